"""A model of one sentence objective is measured on the records of another."""

import dataclasses
import functools
import json

import pytest

from run_scripts.flags.objectives import measured_pairs
from tests.support.crosses import slow
from tests.support.programs import PretrainingJob, curves, one_line, results
from tests.support.record_files import FORMAT, describe, make_files

UNLABELLED = dataclasses.replace(FORMAT, sentence_label=False)
FIRST, SECOND = 7, 8  # ids that stand for one label or the other


def label_of(number, row, opposite=False):
    """The label can be told from the pieces."""
    label = number // 2 % 2
    row["input_ids"][1:] = [(FIRST, SECOND)[label]] * (len(row["input_ids"]) - 1)
    row["next_sentence_labels"] = [label ^ opposite]


opposite_of = functools.partial(label_of, opposite=True)


def write(folder, objective, change=label_of, counts=(20, 20)):
    """Record files of an objective; returns a pattern of their names."""
    folder.mkdir(exist_ok=True)
    record_format = UNLABELLED if objective == "none" else FORMAT
    change = None if objective == "none" else change
    for path in make_files(folder, counts, record_format, change=change):
        describe(path, record_format, objective)
    return folder / "part-*.tfrecord"


class OwnRecords(PretrainingJob):
    """run_pretraining on records that tell their objective."""

    def __init__(self, folder, objective, **sizes):
        super().__init__(folder, **sizes)
        write(folder, objective)

    def evaluate(self, records, kind="bert"):
        """Evaluates what was trained, in a folder of its own: eval_results.txt."""
        output = records.parent / "results"
        flags = {"do_train": False, "do_eval": True, "output_dir": output}
        assert self.run(kind, init_checkpoint=self.output, input_file=records, **flags) == 0
        return results(output)


@pytest.fixture(scope="module", params=("bert", slow("albert")))
def trained(request, tmp_path_factory):
    """A model that was trained with sop until it knows the label from the piece."""
    kind = request.param
    job = OwnRecords(tmp_path_factory.mktemp(kind), "sop")
    steps = {"num_train_steps": 120, "save_checkpoints_steps": 120}
    # With LAMB, ALBERT's default, so small a model learns slower by far.
    assert job.run(kind, do_eval=True, optimizer="adamw", learning_rate=3e-3, **steps) == 0
    return kind, job


def test_results_are_named_after_the_records(trained):
    """Not after the model: BERT may be trained with sop, too."""
    kind, job = trained
    found = results(job.output)
    assert found["sentence_order_accuracy"] == 1 and found["sentence_order_loss"] < 0.1
    assert not any(name.startswith("next_sentence") for name in found)
    drawn = curves(job.output)
    assert "accuracy/sentence_order" in drawn and "accuracy/next_sentence" not in drawn
    (stage,) = json.loads((job.output / "training.json").read_text())
    assert stage["objective"] == "sop"


@pytest.mark.parametrize("change, accuracy", ((label_of, 1), (opposite_of, 0)))
def test_the_other_objective(trained, tmp_path, capsys, change, accuracy):
    """ "Not in order" is label 1 in both, and taken for it."""
    kind, job = trained
    found = job.evaluate(write(tmp_path / "nsp", "nsp", change), kind)
    assert found["next_sentence_accuracy"] == accuracy and found["examples"] == 40
    assert not any(name.startswith("sentence_order") for name in found)
    pairs = found["masked_lm_loss"] + found["next_sentence_loss"]
    assert found["loss"] == pytest.approx(pairs)
    shown = capsys.readouterr().out
    assert "trained with --objective=sop, these records were made with --objective=nsp" in shown


def test_records_without_pairs(trained, tmp_path, capsys):
    kind, job = trained
    found = job.evaluate(write(tmp_path / "none", "none"), kind)
    assert set(found) == {
        "masked_lm_accuracy", "masked_lm_loss", "loss", "examples", "global_step"
    }  # fmt: skip
    assert "these records have no sentence pairs" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("own", ("nsp", "none"))
def test_during_training(tmp_path, capsys, own):
    """Held-out records may be of the other objective, as a second curve."""
    job = OwnRecords(tmp_path, own)
    held_out = write(tmp_path / "sop", "sop", opposite_of)
    flags = {"eval_input_file": held_out, "eval_every_steps": 3, "do_eval": True}
    assert job.run("bert", **flags) == 0
    found, shown = results(job.output), capsys.readouterr().out
    assert "next_sentence_accuracy" not in found
    assert ("sentence_order_accuracy" in found) == (own == "nsp")
    if own == "nsp":
        assert "accuracy/next_sentence" in curves(job.output)
        assert shown.count("these records were made with --objective=sop") == 1
    else:  # its head is as it was initialized, and no number is given for it
        assert found["loss"] == found["masked_lm_loss"] and found["examples"] == 40
        assert "cannot classify sentence pairs: sentence_order_accuracy is not measured" in shown


def test_training_on_several_objectives_is_refused(tmp_path, capsys):
    job = OwnRecords(tmp_path, "nsp")
    describe(job.files[1], FORMAT, "sop")
    assert job.run("bert") == 1
    line = one_line(capsys)
    assert "all files of a flag must be made with one --objective" in line
    assert line.endswith("part-1.tfrecord with sop")


def test_a_training_does_not_go_on_with_another_objective(trained, tmp_path, capsys):
    kind, job = trained
    other = write(tmp_path / "nsp", "nsp")
    assert job.run(kind, input_file=other, num_train_steps=61) == 1
    line = one_line(capsys)
    assert "must hold records of --objective=sop, with which the training in" in line
    assert line.endswith("Received: records of --objective=nsp")


@pytest.mark.parametrize(
    "own, theirs, name, note",
    (
        ("nsp", "nsp", "next_sentence", None),
        ("sop", "nsp", "next_sentence", "trained with --objective=sop"),
        ("nsp", "sop", "sentence_order", "trained with --objective=nsp"),
        ("none", "sop", None, "sentence_order_accuracy is not measured"),
        ("none", None, None, "x_accuracy is not measured"),
        ("sop", "none", None, "no sentence pairs"),
        (None, "none", None, "no sentence pairs"),
        ("none", "none", None, None),
        (None, "nsp", "next_sentence", None),
        ("sop", None, "sentence_order", None),
        (None, None, "x", None),
    ),
)
def test_what_is_measured(own, theirs, name, note):
    found, line = measured_pairs(own, theirs, "x")
    assert found == name and (note in line if note else line is None)
