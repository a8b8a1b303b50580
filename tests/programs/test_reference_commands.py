"""Google's records train unchanged; the command lines of both reference READMEs run."""

import gzip

import pytest

from bert_tf.checkpoint import save_google_checkpoint
from create_pretraining_data.records.reader import read_format
from run_scripts import classifier, create_data, pretrain
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.parser import parse
from tests.support.paths import TEST_DATA
from tests.support.programs import command
from tests.support.task_data import write_mnli, write_table
from tests.support.tiny_models import ONE_LAYER, tiny_model, write_config
from tokenization import SentencePieceTokenizer

DATA = TEST_DATA / "pretraining_data"
SPM_MODEL = TEST_DATA / "tokenization" / "spm_small.model"
VOCABULARY_SIZE = 3222  # of DATA/vocab.txt, which Google's programs were run with

# google-research/bert README.md, "Pre-training with BERT"
BERT_CREATE = """create_pretraining_data.py
  --input_file=./sample_text.txt --output_file=/tmp/tf_examples.tfrecord
  --vocab_file=$BERT_BASE_DIR/vocab.txt --do_lower_case=True --max_seq_length=128
  --max_predictions_per_seq=20 --masked_lm_prob=0.15 --random_seed=12345 --dupe_factor=5"""
BERT_RUN = """run_pretraining.py
  --input_file=/tmp/tf_examples.tfrecord --output_dir=/tmp/pretraining_output --do_train=True
  --do_eval=True --bert_config_file=$BERT_BASE_DIR/bert_config.json
  --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --train_batch_size=32 --max_seq_length=128
  --max_predictions_per_seq=20 --num_train_steps=20 --num_warmup_steps=10 --learning_rate=2e-5"""
# google-research/albert README.md, "Pre-training Instructions"
ALBERT_RUN = """run_pretraining.py
  --input_file=... --output_dir=... --init_checkpoint=... --albert_config_file=... --do_train
  --do_eval --train_batch_size=4096 --eval_batch_size=64 --max_seq_length=512
  --max_predictions_per_seq=20 --optimizer='lamb' --learning_rate=.00176
  --num_train_steps=125000 --num_warmup_steps=3125 --save_checkpoints_steps=5000"""
# google-research/bert README.md, "Sentence (and sentence-pair) classification tasks"
BERT_CLASSIFY = """run_classifier.py
  --task_name=MRPC --do_train=true --do_eval=true --data_dir=$GLUE_DIR/MRPC
  --vocab_file=$BERT_BASE_DIR/vocab.txt --bert_config_file=$BERT_BASE_DIR/bert_config.json
  --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --max_seq_length=128 --train_batch_size=32
  --learning_rate=2e-5 --num_train_epochs=3.0 --output_dir=/tmp/mrpc_output/"""
# The same, "Prediction from classifier"
BERT_PREDICT = """run_classifier.py
  --task_name=MRPC --do_predict=true --data_dir=$GLUE_DIR/MRPC
  --vocab_file=$BERT_BASE_DIR/vocab.txt --bert_config_file=$BERT_BASE_DIR/bert_config.json
  --init_checkpoint=$TRAINED_CLASSIFIER --max_seq_length=128 --output_dir=/tmp/mrpc_output/"""
# google-research/albert README.md, "Fine-tuning on GLUE"
ALBERT_CLASSIFY = """run_classifier.py
  --data_dir=... --output_dir=... --init_checkpoint=... --albert_config_file=...
  --spm_model_file=... --do_train --do_eval --do_predict --do_lower_case --max_seq_length=128
  --optimizer=adamw --task_name=MNLI --warmup_step=1000 --learning_rate=3e-5 --train_step=10000
  --save_checkpoints_steps=100 --train_batch_size=128"""


def lines(count):
    """The first lines of an English text."""
    with gzip.open(DATA / "synth.txt.gz", "rt", encoding="utf-8") as file:
        return "".join(line for line, _ in zip(file, range(count), strict=False))


def write_model(folder, kind="bert", vocab_size=VOCABULARY_SIZE):
    """A small model of one layer; returns the flags that name it."""
    sizes = {"vocab_size": vocab_size, "max_position_embeddings": 512}
    config = write_config(folder / f"{kind}_config.json", kind, **sizes)
    save_google_checkpoint(tiny_model(kind, **sizes, **ONE_LAYER), str(folder / "model.ckpt"))
    return {f"{kind}_config_file": config, "init_checkpoint": folder / "model.ckpt"}


@pytest.mark.slow
def test_bert_s_readme(tmp_path, capsys):
    """Both commands, as they stand but for their paths."""
    (tmp_path / "sample_text.txt").write_text(lines(40))
    records = tmp_path / "tf_examples.tfrecord"
    paths = {"input_file": tmp_path / "sample_text.txt", "vocab_file": DATA / "vocab.txt"}
    assert create_data.main(command(BERT_CREATE, **paths, output_file=records)) == 0
    assert capsys.readouterr().out.startswith("objective: nsp, defaults: BERT's")
    paths = {"input_file": records, "output_dir": tmp_path / "output", **write_model(tmp_path)}
    assert pretrain.main(command(BERT_RUN, **paths)) == 0
    shown = capsys.readouterr().out
    for line in (
        "***** Eval results *****", "global_step = 20", "masked_lm_accuracy", "masked_lm_loss",
        "next_sentence_accuracy", "next_sentence_loss",
    ):  # fmt: skip
        assert line in shown


@pytest.mark.usefixtures("eagerly")
def test_albert_s_readme(tmp_path):
    """The command, only its paths changed; flags after it make it smaller."""
    (tmp_path / "text.txt").write_text(lines(200))
    records = tmp_path / "train.tfrecord"
    create = [
        "create_pretraining_data.py", f"--input_file={tmp_path}/text.txt",
        f"--output_file={records}", f"--vocab_file={DATA}/vocab.txt", "--ngram=3",
        "--dupe_factor=2",
    ]  # fmt: skip
    assert create_data.main(create) == 0
    assert read_format(str(records)).max_seq_length == 512
    output = tmp_path / "output"
    paths = {"input_file": records, "output_dir": output, **write_model(tmp_path, "albert")}
    argv = command(ALBERT_RUN, **paths)
    values = resolve_model_defaults(parse(pretrain.PretrainFlags, argv), "albert")
    assert values.do_train and values.do_eval and values.optimizer == "lamb"
    assert (values.train_batch_size, values.num_train_steps) == (4096, 125000)
    small = ["--train_batch_size=4", "--num_train_steps=2", "--max_eval_steps=1", "--xla=off"]
    assert pretrain.main(argv + small) == 0
    assert "sentence_order_accuracy" in (output / "eval_results.txt").read_text()


def write_mrpc(folder):
    """MRPC's files with the texts of its README's task: 32 pairs to train on, 4 to measure."""
    sentences = [line for line in lines(80).splitlines() if line.strip()]
    header = ("#1 ID", "#2 ID", "#1 String", "#2 String")
    for split, first, count in (
        ("train", "Quality", 32),
        ("dev", "Quality", 4),
        ("test", "index", 5),
    ):
        rows = [(i % 2, i, i, sentences[i], sentences[i + 1 - i % 2]) for i in range(count)]
        write_table(folder / f"{split}.tsv", (first, *header), rows)


@pytest.mark.slow
def test_bert_s_readme_of_classification(tmp_path, capsys):
    """Both commands, as they stand but for their paths."""
    mrpc = tmp_path / "glue" / "MRPC"
    mrpc.mkdir(parents=True)
    write_mrpc(mrpc)
    paths = {
        "data_dir": mrpc, "vocab_file": DATA / "vocab.txt",
        "output_dir": f"{tmp_path}/mrpc_output/", **write_model(tmp_path),
    }  # fmt: skip
    assert classifier.main(command(BERT_CLASSIFY, **paths)) == 0
    shown = capsys.readouterr().out
    results = [line for line in shown.splitlines() if " = " in line]
    for name in ("eval_accuracy", "eval_loss", "global_step = 3", "loss"):
        assert any(line.startswith(f"  {name}") for line in results), name
    # $TRAINED_CLASSIFIER is the folder, or the checkpoint in it.
    trained = tmp_path / "mrpc_output"
    for source in (trained, trained / "model.ckpt-3"):
        argv = command(BERT_PREDICT, **{**paths, "init_checkpoint": source})
        assert classifier.main(argv) == 0
        rows = (trained / "test_results.tsv").read_text().splitlines()
        assert [len(row.split("\t")) for row in rows] == [2] * 5
        (trained / "test_results.tsv").unlink()


@pytest.mark.slow
def test_albert_s_readme_of_classification(tmp_path):
    """The command, only its paths changed; flags after it make it smaller."""
    write_mnli(tmp_path / "MNLI")
    model = write_model(tmp_path, "albert", SentencePieceTokenizer(SPM_MODEL).vocab_size)
    paths = {"data_dir": tmp_path, "output_dir": tmp_path / "output", "spm_model_file": SPM_MODEL}
    argv = command(ALBERT_CLASSIFY, **paths, **model)
    values = resolve_model_defaults(parse(classifier.ClassifierFlags, argv), "albert")
    assert values.do_train and values.do_eval and values.do_predict and values.do_lower_case
    assert (values.train_batch_size, values.train_step, values.warmup_step) == (128, 10000, 1000)
    assert values.cached_dir is None and values.albert_hub_module_handle is None
    assert classifier.main([*argv, "--train_step=2", "--train_batch_size=4", "--xla=off"]) == 0
    assert "eval_accuracy" in (tmp_path / "output" / "eval_results.txt").read_text()
    assert (tmp_path / "output" / "test_results.tsv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(DATA.glob("*_sample.tfrecord")), ids=lambda path: path.stem)
def test_google_s_records_train(path, tmp_path):
    """Two steps and an evaluation."""
    kind = "albert" if path.name.startswith("albert") else "bert"
    sizes = {"vocab_size": VOCABULARY_SIZE, "max_position_embeddings": 128}
    config = write_config(tmp_path / "config.json", kind, **sizes)
    argv = [
        "run_pretraining.py", f"--{kind}_config_file={config}", f"--input_file={path}",
        f"--output_dir={tmp_path}/output", "--do_train", "--do_eval", "--max_seq_length=128",
        f"--max_predictions_per_seq={40 if 'permutation' in path.name else 20}",
        "--train_batch_size=16", "--eval_batch_size=16", "--num_train_steps=2", "--xla=off",
    ]  # fmt: skip
    assert pretrain.main(argv) == 0
    found = (tmp_path / "output" / "eval_results.txt").read_text().splitlines()
    assert len(found) == 7 and "global_step = 2" in found


@pytest.mark.parametrize(
    "flags, google",
    ((BERT_CREATE.split()[4:], "bert_default"), (["--objective=sop"], "albert_wp_default")),
)
def test_our_records_have_google_s_features(flags, google, tmp_path):
    """Names, types and lengths: what Google's input_fn parses."""
    (tmp_path / "text.txt").write_text(lines(40))
    argv = [
        "create_pretraining_data.py", f"--input_file={tmp_path}/text.txt",
        f"--output_file={tmp_path}/ours.tfrecord", f"--vocab_file={DATA}/vocab.txt", *flags,
        "--max_seq_length=128", "--dupe_factor=1",
    ]  # fmt: skip
    assert create_data.main(argv) == 0
    theirs = read_format(str(DATA / f"{google}_sample.tfrecord"))
    assert read_format(str(tmp_path / "ours.tfrecord")) == theirs
