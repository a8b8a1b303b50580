"""A later run of run_classifier in a folder: it resumes, trains other seeds, evaluates."""

import functools
import signal

import numpy as np
import pytest

from bert_tf.checkpoint import google_variables, write_arrays
from bert_tf.checkpoint_files import list_checkpoints
from tests.support.programs import DROPOUT, ClassifierJob, arrays, assert_same, results
from tests.support.task_data import read_table, single_rows, write_splits
from tests.support.tiny_models import ONE_LAYER, tiny_model


@pytest.fixture
def job(tmp_path):
    """A job on sentences that are good or bad."""
    return ClassifierJob(tmp_path).with_sentences(64, 16, 11)


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path, prints, monkeypatch):
    """With dropout, several steps in one go; to the last bit."""
    job = ClassifierJob(tmp_path, **DROPOUT).with_sentences()
    flags = {"train_step": 12, "save_checkpoints_steps": 5}
    assert job.run(**flags, output_dir=tmp_path / "whole") == 0
    stop = functools.partial(job.stop, monkeypatch, signal.SIGTERM, 7)
    assert "the same command continues from there" in prints(stop, **flags, steps_per_loop=3)
    assert list_checkpoints(job.output)[-1] < 12
    assert "resuming from" in prints(job.run, **flags, steps_per_loop=3)
    assert_same(arrays(job.output, 12), arrays(tmp_path / "whole", 12))


@pytest.mark.usefixtures("eagerly")
def test_several_seeds(job, prints):
    """Of a part of the examples, which all of them draw alike."""
    flags = {"num_seeds": 2, "random_seed": 3, "max_train_examples": 20}
    assert "passes over 20 examples" in prints(job.run, **flags, train_step=1, do_eval=True)
    header, *rows = read_table(job.output / "seeds.tsv")
    assert header == ["name", "mean", "standard deviation", "3", "4"]
    found = [results(job.output / f"seed-{seed}") for seed in (3, 4)]
    assert found[0]["eval_loss"] != found[1]["eval_loss"]
    table = {name: list(map(float, cells)) for name, *cells in rows}
    for name in ("eval_accuracy", "eval_loss", "test_macro_f1"):
        values = [each[name] for each in found]
        expected = [np.mean(values), np.std(values, ddof=1), *values]
        assert table[name] == pytest.approx(expected, abs=1e-6)
    weights = [arrays(job.output / f"seed-{seed}", 1) for seed in (3, 4)]
    name = "bert/embeddings/word_embeddings"
    assert (weights[0][name] != weights[1][name]).any()


@pytest.mark.usefixtures("eagerly")
def test_seeds_go_on_with_the_classes_that_they_began_with(job, fails):
    """As a single training does, whatever the training file holds by then."""
    flags = {"num_seeds": 2, "train_step": 1, "do_eval": True}
    assert job.run(**flags) == 0
    rows = [(text, {"bad": "low", "good": "high"}[label]) for text, label in single_rows(60)]
    splits = {"train": (0, 40), "dev": (40, 50), "test": (50, 60)}
    write_splits(job.data, ["text", "label"], rows, **splits)
    said = "the label must be one of bad, good. Received: 'low'"
    fails(job.run, said, **{**flags, "train_step": 2})


@pytest.mark.usefixtures("eagerly")
def test_a_command_with_spaces_between_labels_resumes(job):
    for step in (1, 2):
        assert job.run(labels="bad, good", train_step=step) == 0
    assert job.again(do_eval=True, labels=" bad ,good") == 0


@pytest.mark.usefixtures("eagerly")
def test_weights_without_the_task_s_head_are_not_evaluated(job, fails):
    """The training's command line without --do_train, which Google's program would accept."""
    start = job.folder / "start.ckpt"
    stored = {n: v.numpy() for n, v in google_variables(tiny_model(**ONE_LAYER)).items()}
    write_arrays(str(start), {**stored, "cls/squad/output_bias": np.zeros(2, np.float32)})
    found = f"must be fine-tuned, with the task's head. Received: {start} without output_"
    for hint in ("", f" (without --init_checkpoint, {job.output}/model.ckpt-1 is used)"):
        flags = {"init_checkpoint": start, "labels": "good,bad"}
        said = found.replace(". Received", f"{hint}. Received")
        fails(job.run, said, **flags, do_train=False, do_eval=True)
        assert job.run(**flags, train_step=1) == 0
    assert job.again(do_eval=True) == 0


@pytest.mark.usefixtures("eagerly")
def test_seeds_beside_a_training_begin_from_the_given_weights(job, prints):
    """A single training in the same folder does not resume as one of them."""
    first = job.folder / "first"
    assert job.run(train_step=1, output_dir=first) == 0
    flags = {"model_dir": first, "bert_config_file": None, "vocab_file": None, "train_step": 1}
    assert job.run(**flags) == 0
    start = f"starting from --init_checkpoint: {first}/model.ckpt-1"
    assert prints(job.run, **flags, num_seeds=2, do_eval=True).count(start) == 2
