"""The program run_classifier: trains, measures, predicts, and refuses bad input in one line."""

import json
import shutil
import signal

import numpy as np
import pytest

from bert_tf.checkpoint_files import list_checkpoints
from finetuning.metrics import METRICS
from tests.support.programs import NO_DROPOUT, ClassifierJob, arrays, curves, results
from tests.support.task_data import (
    BAD,
    GOOD,
    SENTENCE_PIECES,
    read_table,
    sentence,
    write_mnli,
    write_splits,
    write_table,
)
from tests.support.tiny_models import SIZES

TEXT_AND_LABEL = ["text", "label"]
SPLITS = {"train": (0, 64), "dev": (64, 80), "test": (80, 91)}
ALL = {"do_train": True, "do_eval": True, "do_predict": True}


@pytest.fixture
def job(tmp_path):
    """A job on sentences that are good or bad."""
    return ClassifierJob(tmp_path).with_sentences(64, 16, 11)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The same, trained with all flags that a folder remembers, measured, and predicted."""
    job = ClassifierJob(tmp_path_factory.mktemp("trained"), num_hidden_layers=2)
    job.with_sentences(64, 16, 11)
    flags = {"feature_layers": "-1,-2", "bucket_boundaries": "auto", "metrics": "macro_f1"}
    assert job.run(**ALL, **flags) == 0
    return job


WRITTEN = ("eval_results.txt", "predictions_test.tsv", "test_results.tsv")


def written(folder):
    """What evaluation and prediction left in a folder."""
    return [(folder / name).read_text() for name in WRITTEN]


def test_single_label(trained):
    found = results(trained.output)
    assert found["eval_macro_f1"] == found["test_macro_f1"] == 1
    assert found["eval_loss"] == found["loss"] < 0.1 and found["test_loss"] < 0.1
    assert (found["global_step"], found["examples"]) == (40, 16)
    header, *rows = read_table(trained.output / "predictions_test.tsv")
    assert header == ["id", "text", "label", "prediction", "bad", "good"]
    expected = read_table(trained.data / "test.tsv")[1:]
    assert [row[1:3] for row in rows] == expected and len(rows) == 11
    assert [row[0] for row in rows] == [f"{trained.data}/test.tsv line {i}" for i in range(2, 13)]
    shares = np.array([row[4:] for row in rows], float)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=2e-6)
    assert [header[4 + i] for i in shares.argmax(axis=1)] == [row[3] for row in rows]
    assert [row[3] for row in rows] == [label for _, label in expected]
    theirs = np.array(read_table(trained.output / "test_results.tsv"), float)
    np.testing.assert_allclose(theirs, shares, atol=1e-6)


def test_a_folder_that_explains_itself(trained, fails):
    """Measured and predicted again, by the folder alone, together and one after the other."""
    expected = written(trained.output)
    settings = json.loads((trained.output / "finetuning.json").read_text())
    assert settings["labels"] == "bad,good" and settings["feature_layers"] == "-1,-2"
    for name in WRITTEN:
        (trained.output / name).unlink()
    assert trained.again(do_eval=True) == 0
    assert trained.again(do_predict=True) == 0
    assert written(trained.output) == expected
    # Its weights named by --init_checkpoint, into another folder; another task is refused.
    other = trained.folder / "other"
    # The step of a checkpoint without one in its name, as Google's best, is in the checkpoint.
    renamed = shutil.copytree(trained.output, trained.folder / "renamed")
    for path in renamed.glob("model.ckpt-40.*"):
        path.rename(str(path).replace("-40.", "-best."))
    for number, source in enumerate((trained.output, trained.output / "model.ckpt-40", renamed)):
        flags = {"init_checkpoint": source, "output_dir": other / str(number)}
        assert trained.again(do_eval=True, do_predict=True, **flags) == 0
        assert written(other / str(number)) == expected
    words = "--feature_layers", "-1,-2", trained.output  # others: test_saved_settings
    fails(trained.again, *words, do_eval=True, feature_layers="-1")


def test_data_that_has_a_test_alone(trained, tmp_path):
    """Unlabelled, in the order of the file; the labels are the folder's."""
    write_table(tmp_path / "test.tsv", ["text"], [("the film is sad",), ("so nice",)])
    flags = {"data_dir": tmp_path, "output_dir": tmp_path / "out"}
    assert trained.again(do_predict=True, init_checkpoint=trained.output, **flags) == 0
    header, *rows = read_table(tmp_path / "out" / "predictions_test.tsv")
    assert header == ["id", "text", "prediction", "bad", "good"]
    assert [row[1:3] for row in rows] == [["the film is sad", "bad"], ["so nice", "good"]]


@pytest.mark.slow
def test_a_folder_of_another_model_does_not_speak_for_the_weights(trained, job):
    """Nor does the folder that the program is called in."""
    assert job.run(train_step=1, labels="good,bad") == 0
    flags = {"output_dir": job.output, "init_checkpoint": trained.output, "data_dir": trained.data}
    assert trained.again(do_eval=True, **flags) == 0
    assert results(job.output)["eval_macro_f1"] == 1


@pytest.mark.slow
def test_regression_of_pairs_with_albert(tmp_path):
    """How many of the two are good; the encoder has two layers of the same weights."""
    rng, rows = np.random.default_rng(0), []
    for number in range(91):
        scores = number % 2, number // 2 % 2
        rows.append((*(sentence(rng, GOOD if s else BAD, 3) for s in scores), sum(scores)))
    job = ClassifierJob(tmp_path, num_hidden_layers=2)
    write_splits(job.data, ["text", "other", "label"], rows, **SPLITS)
    flags = {"task_type": "regression", "second_column": "other", "train_step": 400}
    # Two layers of the same weights do not learn from every start.
    assert job.run("albert", **ALL, **flags, random_seed=1) == 0
    found = results(job.output)
    assert found["eval_pearson"] > 0.7 > abs(found["baseline_pearson"])
    header, *rows = read_table(job.output / "predictions_test.tsv")
    assert header == ["id", "text", "second", "label", "prediction"]
    labels, predictions = np.array([row[3:] for row in rows], float).T
    assert np.corrcoef(labels, predictions)[0, 1] == pytest.approx(found["test_pearson"], abs=1e-4)
    assert len(read_table(job.output / "test_results.tsv")[0]) == 1


@pytest.mark.usefixtures("eagerly")
def test_freezing_trains_the_head_alone(trained, job):
    """On what was trained before; its encoder stays as it is to the last bit."""
    first = arrays(trained.output, 40)
    job.configure(**NO_DROPOUT, num_hidden_layers=2)
    flags = {"init_checkpoint": trained.output / "model.ckpt-40", "feature_layers": "-1,-2"}
    assert job.run(**flags, freeze_encoder=True, train_step=2) == 0
    found = arrays(job.output, 2)
    encoder = [name for name in first if name.startswith("bert/") and "adam" not in name]
    assert len(encoder) > 20
    for name in encoder:
        assert found[name].tobytes() == first[name].tobytes(), name
    # New, not that of the checkpoint; then trained.
    assert found["output_bias"].any() and found["output_weights/adam_m"].any()
    assert np.abs(found["output_weights"] - first["output_weights"]).max() > 1e-3


@pytest.mark.usefixtures("eagerly")
def test_the_best_is_kept_and_training_ends_early(job, monkeypatch, prints):
    """Two evaluations no better than the second; stopped before it, and started again."""
    accuracies = iter((0.5, 0.9, 0.7, 0.6))
    monkeypatch.setitem(METRICS, "accuracy", lambda *_: next(accuracies, 0.1))
    flags = {"eval_every_steps": 2, "patience": 2, "do_eval": True}
    assert job.stop(monkeypatch, signal.SIGTERM, 3, **flags) == 0
    assert not (job.output / "eval_results.txt").exists()  # measured when training is done
    assert job.run(**flags) == 0
    losses = dict(curves(job.output / "eval")["loss/label"])
    assert sorted(losses) == [2, 4, 6, 8] and list_checkpoints(job.output)[-1] == 8
    assert list_checkpoints(job.output / "best") == [4]
    best, found = results(job.output / "best"), results(job.output)
    assert best["eval_accuracy"] == 0.9 and best["global_step"] == found["global_step"] == 4
    assert found["eval_loss"] == best["eval_loss"] == pytest.approx(losses[4])
    assert losses[4] != pytest.approx(losses[8])
    for path in job.output.glob("model.ckpt-8.*"):  # as a kill while the best is replaced leaves it
        shutil.copy(path, job.output / "best")
    shown = prints(job.run, **flags)  # nothing is left to train
    assert "already stopped at step 8 of 40 by --patience: nothing to train" in shown
    assert "compiling" not in shown and "\nsteps 9 to 40" not in shown
    assert results(job.output) == found and list_checkpoints(job.output)[-1] == 8
    # Alone it takes the best one too, from the folder or by its name.
    for source in (job.output, job.output / "best" / "model.ckpt-4"):
        assert job.again(do_eval=True, init_checkpoint=source) == 0
        assert results(job.output) == found


@pytest.mark.usefixtures("eagerly")
def test_a_task_without_dev_holds_examples_out(job, prints):
    (job.data / "dev.tsv").unlink()
    out = prints(job.run, train_step=1, eval_every_steps=1)
    assert "held_out: 3 of the training examples" in out and "over 61 examples" in out
    assert list_checkpoints(job.output / "best")


@pytest.mark.usefixtures("eagerly")
def test_mnli_is_measured_on_both_splits(tmp_path, fails):
    job = ClassifierJob(tmp_path)
    write_mnli(job.data)
    assert job.run(**ALL, task_name="MNLI", train_step=1) == 0
    found = results(job.output)
    assert found["examples"] == 6
    for name in ("eval", "dev_mismatched"):
        assert 0 <= found[f"{name}_accuracy"] <= 1 and found[f"{name}_loss"] > 0
    header, *rows = read_table(job.output / "predictions_test.tsv")
    assert header[3:] == ["prediction", "contradiction", "entailment", "neutral"]
    assert [row[0] for row in rows] == ["0", "1", "2", "3"]
    new = tmp_path / "new.csv"
    flags = {"data_dir": None, "task_name": None, "do_train": False, "do_predict": True}
    flags["predict_file"] = new
    said = (
        "new.csv line 1 must name the columns sentence2. Received: text, second",
        "(--text_column, --label_column and others name other columns)",
    )
    for header, columns, status in (
        ("sentence1,sentence2", {}, 0),
        ("text,second", {}, 1),  # of which a text alone was taken
        ("text,second", {"text_column": "text"}, 1),
        ("text,second", {"text_column": "text", "second_column": "second"}, 0),
        ("text,sentence2", {"text_column": "text"}, 0),  # the other as the task says
    ):
        new.write_text(f"{header}\nthe film,so good\n")
        if status:
            fails(job.run, *said, **flags, **columns)
        else:
            assert job.run(**flags, **columns) == 0
            row = read_table(job.output / "predictions_new.tsv")[1]
            assert row[1:3] == ["the film", "so good"]


def with_label(job):
    write_table(job.data / "dev.tsv", TEXT_AND_LABEL, [("the", "good"), ("a", "fair")])
    return {}


def with_vocabulary(job):
    lines = [*SENTENCE_PIECES, *map(str, range(SIZES["vocab_size"]))]
    (job.folder / "large.txt").write_text("\n".join(lines) + "\n")
    return {"vocab_file": job.folder / "large.txt"}


def without_two_examples(job):
    """None can be held out."""
    (job.data / "dev.tsv").unlink()
    job.with_sentences(1)
    return {"labels": "good,bad", "eval_every_steps": 2, "do_eval": False}


def without_data(job):
    (job.data / "train.tsv").unlink()
    return {"labels": "good,bad"}


CASED = "multi_cased_L-12_H-768_A-12"


@pytest.mark.parametrize(
    "change, words",
    (
        ({"task_name": "mrcp"}, ("--task_name", "mrpc", "jsonl", "mrcp")),
        ({"task_name": None}, ("--task_name", "none")),
        ({"task_name": "mrpc", "labels": "0,1"}, ("--labels", "tsv and jsonl", "mrpc")),
        ({"task_name": "mrpc"}, ("train.tsv line 1", "#1 String")),
        ({"task_name": "nsmc"}, ("ratings_train.txt", "no such file")),
        (with_label, ("dev.tsv line 3", "bad, good", "'fair'")),
        (without_two_examples, ("there must be two at least. Received: 1",)),
        (without_data, ("must have train", "dev, test")),
        ({"do_train": False, "do_eval": False}, ("--do_train, --do_eval or --do_predict",)),
        ({"train_step": None, "num_train_epochs": 0.01}, ("--num_train_epochs must be", "0.01")),
        ({"train_step": None, "num_train_epochs": 0.1, "train_batch_size": 64}, ("64 examples",)),
        ({"num_seeds": 2, "do_eval": False}, ("--num_seeds needs", "2")),
        (with_vocabulary, ("vocab_size=60", f"large.txt has {len(SENTENCE_PIECES) + 60} entries")),
        ({"train_batch_size": 6, "gradient_accumulation_steps": 4}, ("--train_batch_size", "6")),
        ({"train_batch_size": 7, "distribution_strategy": "mirrored"}, ("7", "2 devices")),
        ({"max_seq_length": 33}, ("--max_seq_length", "33 and 32")),
        ({"bucket_boundaries": "8,4"}, ("--bucket_boundaries", "8,4")),
        ({"feature_layers": "2"}, ("from -2 to 1", "2")),
        ({"metrics": "f2"}, ("--metrics", "macro_f1", "f2")),
        ({"init_checkpoint": "gone"}, ("--init_checkpoint", "gone.index")),
        # A released model's folder says the case; the default is lower-casing.
        (
            {"init_checkpoint": f"{CASED}/bert_model.ckpt"},
            (f"_lower_case must be False for {CASED}",),
        ),
        ({"do_train": False}, ("a model's folder must hold a checkpoint", "data")),
        ({"predict_split": "best", "do_predict": True}, ("must have best", "train, dev, test")),
        ({"vocab_file": None}, ("--vocab_file", "none")),
    ),
)
def test_bad_input_is_one_line(job, fails, monkeypatch, change, words):
    monkeypatch.chdir(job.folder)
    flags = {"do_eval": True, **(change(job) if callable(change) else change)}
    if flags.get("do_train") is False:
        flags["output_dir"] = job.data  # it is there, without a model
    fails(job.run, *words, **flags)
    assert not list(job.output.glob("model.ckpt*"))
