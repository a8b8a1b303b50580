"""The command lines of both reference READMEs for SQuAD and RACE run unchanged.

google-research/albert has a program for each version of SQuAD and starts them as modules; here
run_squad_v1.py and run_squad_v2.py are launchers of run_squad.py, of which the second is told
--version_2_with_negative. Other than the paths only --use_tpu=True is taken out, since there are no
TPUs here; RACE is made shorter by flags after the command.
"""

import json
import runpy
import sys
from unittest import mock

import pytest

from bert_tf.checkpoint import save_google_checkpoint
from tests.support.models.released_models import SPM_MODEL
from tests.support.paths import ROOT
from tests.support.programs import command, results
from tests.support.task_data import number_questions, write_race
from tests.support.tiny_models import ONE_LAYER, tiny_model, write_config
from tests.support.vocabularies import SPECIAL
from tokenization import SentencePieceTokenizer

WITHOUT_XLA = "--xla=off"  # which compiles longer than these models train

# google-research/bert README.md, "SQuAD 1.1"
BERT_1 = """run_squad.py
  --vocab_file=$BERT_BASE_DIR/vocab.txt --bert_config_file=$BERT_BASE_DIR/bert_config.json
  --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --do_train=True
  --train_file=$SQUAD_DIR/train-v1.1.json --do_predict=True
  --predict_file=$SQUAD_DIR/dev-v1.1.json --train_batch_size=12 --learning_rate=3e-5
  --num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128 --output_dir=/tmp/squad_base/"""
# The same, "SQuAD 2.0": first trained, then answered again with a threshold.
BERT_2 = """run_squad.py
  --vocab_file=$BERT_LARGE_DIR/vocab.txt --bert_config_file=$BERT_LARGE_DIR/bert_config.json
  --init_checkpoint=$BERT_LARGE_DIR/bert_model.ckpt --do_train=True
  --train_file=$SQUAD_DIR/train-v2.0.json --do_predict=True
  --predict_file=$SQUAD_DIR/dev-v2.0.json --train_batch_size=24 --learning_rate=3e-5
  --num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128
  --output_dir=gs://some_bucket/squad_large/ --tpu_name=$TPU_NAME --version_2_with_negative=True"""
BERT_2_AGAIN = BERT_2.replace("do_train=True", "do_train=False") + " --null_score_diff_threshold="
# google-research/albert README.md, "Fine-tuning on SQuAD"
ALBERT_1 = """run_squad_v1.py
  --albert_config_file=... --output_dir=... --train_file=... --predict_file=...
  --train_feature_file=... --predict_feature_file=... --predict_feature_left_file=...
  --init_checkpoint=... --spm_model_file=... --do_lower_case --max_seq_length=384
  --doc_stride=128 --max_query_length=64 --do_train=true --do_predict=true --train_batch_size=48
  --predict_batch_size=8 --learning_rate=5e-5 --num_train_epochs=2.0 --warmup_proportion=.1
  --save_checkpoints_steps=5000 --n_best_size=20 --max_answer_length=30"""
FEATURE_FILES = ("train_feature_file", "predict_feature_file", "predict_feature_left_file")
ALBERT_2 = ALBERT_1.replace("_v1", "_v2").replace("=true", "")
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


def write_model(folder, kind):
    """A pre-trained model; returns the flags that name it."""
    if kind == "bert":
        names = {"vocab_file": folder / "vocab.txt"}
        pieces = [*SPECIAL, "seven", "red", "what", "number"]
        names["vocab_file"].write_text("\n".join(pieces) + "\n")
    else:
        names, pieces = {"spm_model_file": SPM_MODEL}, SentencePieceTokenizer(SPM_MODEL).vocab
    sizes = {"vocab_size": len(pieces), "max_position_embeddings": 512}
    config = write_config(folder / f"{kind}_config.json", kind, **sizes)
    model = tiny_model(kind, **sizes, **ONE_LAYER)
    save_google_checkpoint(model, str(folder / "model.ckpt"))
    return {
        f"{kind}_config_file": config,
        "init_checkpoint": folder / "model.ckpt",
        "output_dir": f"{folder}/output/",
        **names,
    }


def write_squad(folder, version_2, count):
    """So many questions to train on, and four to answer."""
    names = {}
    for split, number in (("train", count), ("predict", 4)):
        names[f"{split}_file"] = folder / f"{split}.json"
        names[f"{split}_file"].write_text(json.dumps(number_questions(number, number, version_2)))
    return names


@pytest.mark.slow
def test_bert_squad_1(tmp_path):
    paths = {**write_model(tmp_path, "bert"), **write_squad(tmp_path, False, 12)}
    assert launch([*command(BERT_1, **paths), WITHOUT_XLA]) == 0
    found = results(tmp_path / "output")
    assert found["global_step"] == 2 and "eval_f1" in found
    assert len(json.loads((tmp_path / "output" / "predictions.json").read_text())) == 4


@pytest.mark.usefixtures("eagerly")
def test_bert_squad_2(tmp_path):
    """Both commands: the second answers with the checkpoint in --output_dir, as Google's does."""
    paths = {**write_model(tmp_path, "bert"), **write_squad(tmp_path, True, 24)}
    assert launch([*command(BERT_2, **paths), WITHOUT_XLA]) == 0
    found = results(tmp_path / "output")
    assert found["global_step"] == 2 and "eval_best_f1_thresh" in found
    odds = json.loads((tmp_path / "output" / "null_odds.json").read_text())
    for threshold, empty in ((min(odds.values()) - 1, True), (max(odds.values()) + 1, False)):
        again = [*command(BERT_2_AGAIN + str(threshold), **paths), WITHOUT_XLA]
        assert launch(again) == 0
        answers = json.loads((tmp_path / "output" / "predictions.json").read_text())
        assert [not text for text in answers.values()] == [empty] * 4
        assert results(tmp_path / "output")["eval_best_f1"] == found["eval_best_f1"]


@pytest.mark.slow
@pytest.mark.parametrize("text", (ALBERT_1, ALBERT_2), ids=("v1", "v2"))
def test_albert_squad(text, tmp_path, capsys):
    version_2 = text is ALBERT_2
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
