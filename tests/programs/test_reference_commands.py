"""Google's records train unchanged; the command lines of both reference READMEs run.

google-research/albert has a program for each version of SQuAD and starts them as modules; here
run_squad_v1.py and run_squad_v2.py are launchers of run_squad.py, of which the second is told
--version_2_with_negative. Other than the paths only --use_tpu=True is taken out, since there are no
TPUs here; what trains too long is made shorter by flags after the command.
"""

import gzip
import json
import runpy
import sys
from unittest import mock

import pytest

from bert_tf.checkpoint import save_google_checkpoint
from create_pretraining_data.records.reader import read_format
from run_scripts import classifier, create_data, pretrain
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.parser import parse
from tests.support.models.released_models import SPM_MODEL
from tests.support.paths import ROOT, TEST_DATA
from tests.support.programs import PretrainingJob, command, results
from tests.support.task_data import (
    number_questions,
    write_mnli,
    write_questions,
    write_race,
    write_table,
)
from tests.support.tiny_models import ONE_LAYER, tiny_model, write_config
from tokenization import SentencePieceTokenizer

DATA = TEST_DATA / "pretraining_data"
WITHOUT_XLA = "--xla=off"  # which compiles longer than these models train
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

# google-research/bert README.md, "SQuAD 1.1"
BERT_SQUAD_1 = """run_squad.py
  --vocab_file=$BERT_BASE_DIR/vocab.txt --bert_config_file=$BERT_BASE_DIR/bert_config.json
  --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --do_train=True
  --train_file=$SQUAD_DIR/train-v1.1.json --do_predict=True
  --predict_file=$SQUAD_DIR/dev-v1.1.json --train_batch_size=12 --learning_rate=3e-5
  --num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128 --output_dir=/tmp/squad_base/"""
# The same, "SQuAD 2.0": first trained, then answered again with a threshold.
BERT_SQUAD_2 = """run_squad.py
  --vocab_file=$BERT_LARGE_DIR/vocab.txt --bert_config_file=$BERT_LARGE_DIR/bert_config.json
  --init_checkpoint=$BERT_LARGE_DIR/bert_model.ckpt --do_train=True
  --train_file=$SQUAD_DIR/train-v2.0.json --do_predict=True
  --predict_file=$SQUAD_DIR/dev-v2.0.json --train_batch_size=24 --learning_rate=3e-5
  --num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128
  --output_dir=gs://some_bucket/squad_large/ --tpu_name=$TPU_NAME --version_2_with_negative=True"""
BERT_SQUAD_2_AGAIN = (
    BERT_SQUAD_2.replace("do_train=True", "do_train=False") + " --null_score_diff_threshold="
)
# google-research/albert README.md, "Fine-tuning on SQuAD"
ALBERT_SQUAD_1 = """run_squad_v1.py
  --albert_config_file=... --output_dir=... --train_file=... --predict_file=...
  --train_feature_file=... --predict_feature_file=... --predict_feature_left_file=...
  --init_checkpoint=... --spm_model_file=... --do_lower_case --max_seq_length=384
  --doc_stride=128 --max_query_length=64 --do_train=true --do_predict=true --train_batch_size=48
  --predict_batch_size=8 --learning_rate=5e-5 --num_train_epochs=2.0 --warmup_proportion=.1
  --save_checkpoints_steps=5000 --n_best_size=20 --max_answer_length=30"""
FEATURE_FILES = ("train_feature_file", "predict_feature_file", "predict_feature_left_file")
ALBERT_SQUAD_2 = ALBERT_SQUAD_1.replace("_v1", "_v2").replace("=true", "")
# The same, "Fine-tuning on RACE"
ALBERT_RACE = """run_race.py
  --albert_config_file=... --output_dir=... --train_file=... --eval_file=... --data_dir=...
  --init_checkpoint=... --spm_model_file=... --max_seq_length=512 --max_qa_length=128 --do_train
  --do_eval --train_batch_size=32 --eval_batch_size=8 --learning_rate=1e-5 --train_step=12000
  --warmup_step=1000 --save_checkpoints_steps=100"""


def launch(argv):
    """Runs a launcher in this process, whose streams stay pytest's; returns the exit status."""
    kept, sys.argv = sys.argv, argv
    try:
        with mock.patch("run_scripts.programs.begin"):
            runpy.run_path(str(ROOT / argv[0]), run_name="__main__")
    except SystemExit as end:
        return end.code
    finally:
        sys.argv = kept


def lines(count):
    """The first lines of an English text."""
    with gzip.open(DATA / "synth.txt.gz", "rt", encoding="utf-8") as file:
        return "".join(line for line, _ in zip(file, range(count), strict=False))


def write_model(folder, kind="bert", reads_text=True):
    """A small model of one layer; returns the flags that name it, its tokenizer, the output."""
    size = VOCABULARY_SIZE
    tokenizer = {"vocab_file": DATA / "vocab.txt"}
    if kind == "albert":
        size = SentencePieceTokenizer(SPM_MODEL).vocab_size if reads_text else size
        tokenizer = {"spm_model_file": SPM_MODEL}
    sizes = {"vocab_size": size, "max_position_embeddings": 512}
    save_google_checkpoint(tiny_model(kind, **sizes, **ONE_LAYER), str(folder / "model.ckpt"))
    return {
        f"{kind}_config_file": write_config(folder / f"{kind}_config.json", kind, **sizes),
        "init_checkpoint": folder / "model.ckpt",
        "output_dir": f"{folder}/output/",
        **(tokenizer if reads_text else {}),
    }


@pytest.mark.slow
def test_bert_s_readme(tmp_path, capsys):
    """Both commands, as they stand but for their paths."""
    (tmp_path / "sample_text.txt").write_text(lines(40))
    records = tmp_path / "tf_examples.tfrecord"
    paths = {"input_file": tmp_path / "sample_text.txt", "vocab_file": DATA / "vocab.txt"}
    assert launch(command(BERT_CREATE, **paths, output_file=records)) == 0
    assert capsys.readouterr().out.startswith("objective: nsp, defaults: BERT's")
    paths = {"input_file": records, **write_model(tmp_path, reads_text=False)}
    assert launch(command(BERT_RUN, **paths)) == 0
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
    paths = {"input_file": records, **write_model(tmp_path, "albert", reads_text=False)}
    argv = command(ALBERT_RUN, **paths)
    values = resolve_model_defaults(parse(pretrain.PretrainFlags, argv), "albert")
    assert values.do_train and values.do_eval and values.optimizer == "lamb"
    assert (values.train_batch_size, values.num_train_steps) == (4096, 125000)
    small = ["--train_batch_size=4", "--num_train_steps=2", "--max_eval_steps=1", WITHOUT_XLA]
    assert launch(argv + small) == 0
    assert "sentence_order_accuracy" in results(tmp_path / "output")


def write_mrpc(folder):
    """MRPC's files with the texts of its README's task: 32 pairs to train on, 4 to measure."""
    sentences = [line for line in lines(80).splitlines() if line.strip()]
    header = ("#1 ID", "#2 ID", "#1 String", "#2 String")
    splits = {"train": ("Quality", 32), "dev": ("Quality", 4), "test": ("index", 5)}
    for split, (first, count) in splits.items():
        rows = [(i % 2, i, i, sentences[i], sentences[i + 1 - i % 2]) for i in range(count)]
        write_table(folder / f"{split}.tsv", (first, *header), rows)


@pytest.mark.slow
def test_bert_s_readme_of_classification(tmp_path, capsys):
    """Both commands, as they stand but for their paths."""
    mrpc = tmp_path / "glue" / "MRPC"
    mrpc.mkdir(parents=True)
    write_mrpc(mrpc)
    paths = {"data_dir": mrpc, **write_model(tmp_path)}
    assert launch(command(BERT_CLASSIFY, **paths)) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if " = " in line]
    for name in ("eval_accuracy", "eval_loss", "global_step = 3", "loss"):
        assert any(line.startswith(f"  {name}") for line in shown), name
    # $TRAINED_CLASSIFIER is the folder, or the checkpoint in it.
    trained = tmp_path / "output"
    for source in (trained, trained / "model.ckpt-3"):
        assert launch(command(BERT_PREDICT, **{**paths, "init_checkpoint": source})) == 0
        rows = (trained / "test_results.tsv").read_text().splitlines()
        assert [len(row.split("\t")) for row in rows] == [2] * 5
        (trained / "test_results.tsv").unlink()


@pytest.mark.slow
def test_albert_s_readme_of_classification(tmp_path):
    """The command, only its paths changed; flags after it make it smaller."""
    write_mnli(tmp_path / "MNLI")
    argv = command(ALBERT_CLASSIFY, data_dir=tmp_path, **write_model(tmp_path, "albert"))
    values = resolve_model_defaults(parse(classifier.ClassifierFlags, argv), "albert")
    assert values.do_train and values.do_eval and values.do_predict and values.do_lower_case
    assert (values.train_batch_size, values.train_step, values.warmup_step) == (128, 10000, 1000)
    assert values.cached_dir is None and values.albert_hub_module_handle is None
    assert launch([*argv, "--train_step=2", "--train_batch_size=4", WITHOUT_XLA]) == 0
    assert "eval_accuracy" in results(tmp_path / "output")
    assert (tmp_path / "output" / "test_results.tsv").exists()


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(DATA.glob("*_sample.tfrecord")), ids=lambda path: path.stem)
def test_google_s_records_train(path, tmp_path):
    kind = "albert" if path.name.startswith("albert") else "bert"
    job = PretrainingJob(tmp_path, vocab_size=VOCABULARY_SIZE, max_position_embeddings=128)
    flags = {"max_seq_length": 128, "train_batch_size": 16, "num_train_steps": 2, "do_eval": True}
    flags["max_predictions_per_seq"] = 40 if "permutation" in path.name else 20
    assert job.run(kind, **flags, input_file=path) == 0
    found = results(job.output)
    assert len(found) == 7 and found["global_step"] == 2


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


def write_squad(folder, version_2, count):
    """So many questions to train on, and four to answer."""
    names = {}
    for split, number in (("train", count), ("predict", 4)):
        content = number_questions(number, number, version_2)
        names[f"{split}_file"] = write_questions(folder / f"{split}.json", content)
    return names


@pytest.mark.slow
def test_bert_squad_1(tmp_path):
    paths = {**write_model(tmp_path), **write_squad(tmp_path, False, 12)}
    assert launch([*command(BERT_SQUAD_1, **paths), WITHOUT_XLA]) == 0
    found = results(tmp_path / "output")
    assert found["global_step"] == 2 and "eval_f1" in found
    assert len(json.loads((tmp_path / "output" / "predictions.json").read_text())) == 4


@pytest.mark.usefixtures("eagerly")
def test_bert_squad_2(tmp_path):
    """Both commands: the second answers with the checkpoint in --output_dir, as Google's does."""
    paths = {**write_model(tmp_path), **write_squad(tmp_path, True, 24)}
    assert launch([*command(BERT_SQUAD_2, **paths), WITHOUT_XLA]) == 0
    found = results(tmp_path / "output")
    assert found["global_step"] == 2 and "eval_best_f1_thresh" in found
    odds = json.loads((tmp_path / "output" / "null_odds.json").read_text())
    for threshold, empty in ((min(odds.values()) - 1, True), (max(odds.values()) + 1, False)):
        again = [*command(BERT_SQUAD_2_AGAIN + str(threshold), **paths), WITHOUT_XLA]
        assert launch(again) == 0
        answers = json.loads((tmp_path / "output" / "predictions.json").read_text())
        assert [not text for text in answers.values()] == [empty] * 4
        assert results(tmp_path / "output")["eval_best_f1"] == found["eval_best_f1"]


@pytest.mark.slow
@pytest.mark.parametrize("text", (ALBERT_SQUAD_1, ALBERT_SQUAD_2), ids=("v1", "v2"))
def test_albert_squad(text, tmp_path, capsys):
    version_2 = text is ALBERT_SQUAD_2
    paths = {**write_model(tmp_path, "albert"), **write_squad(tmp_path, version_2, 48)}
    for name in FEATURE_FILES:
        paths[name] = tmp_path / f"{name}.tf_record"
    assert launch([*command(text, **paths), WITHOUT_XLA]) == 0
    assert results(tmp_path / "output")["global_step"] == 2
    assert ("eval_best_f1" in results(tmp_path / "output")) == version_2
    shown = capsys.readouterr().out
    for name in FEATURE_FILES:
        assert not paths[name].exists() and f"--{name}" in shown
    nbest = json.loads((tmp_path / "output" / "nbest_predictions.json").read_text())
    score = "start_log_prob" if version_2 else "start_logit"
    assert all(score in answers[0] for answers in nbest.values())


@pytest.mark.slow
def test_albert_race(tmp_path):
    write_race(tmp_path, train=4, dev=2)
    paths = {**write_model(tmp_path, "albert"), "data_dir": tmp_path}
    paths |= {"train_file": tmp_path / "train.tf_record", "eval_file": tmp_path / "eval.tf_record"}
    shorter = ["--train_step=2", "--warmup_step=1", "--train_batch_size=4", WITHOUT_XLA]
    assert launch([*command(ALBERT_RACE, **paths), *shorter]) == 0
    found = results(tmp_path / "output")
    assert found["global_step"] == 2 and "eval_accuracy" in found
