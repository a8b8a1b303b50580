"""What a training does in the folder of an earlier one, in pre-training and in fine-tuning."""

import functools
import shutil
import signal

import numpy as np
import pytest

from bert_tf.checkpoint import google_variables, write_arrays
from bert_tf.checkpoint_files import list_checkpoints
from model_formats.model_folder import ModelFolder
from tests.support.programs import (
    DROPOUT,
    NO_DROPOUT,
    ClassifierJob,
    PretrainingJob,
    arrays,
    assert_same,
    results,
)
from tests.support.task_data import read_table, single_rows, write_splits
from tests.support.tiny_models import ONE_LAYER, SIZES, tiny_model

# A program's job -> the flags for a number of updates.
UPDATES = {
    PretrainingJob: lambda count: {"num_train_steps": count, "num_warmup_steps": 0},
    ClassifierJob: lambda count: {"train_step": count, "warmup_step": 0},
}


@pytest.fixture(params=UPDATES, ids=lambda job_class: job_class.__name__)
def job(request, tmp_path):
    """A job of each program."""
    job = request.param(tmp_path, **NO_DROPOUT)
    return job.with_sentences(16) if request.param is ClassifierJob else job


def train(job, updates, **flags):
    """The exit status of a training of so many updates."""
    return job.run(**UPDATES[type(job)](updates), **flags)


def test_another_kind_of_model(job, fails):
    """Left from a training that was stopped at once; beside both files no program could read it."""
    job.output.mkdir()
    left = shutil.copy(job.folder / "albert.json", job.output / "albert_config.json")
    fails(
        lambda: train(job, 1),
        "must not hold another kind of model",
        # The words fit a folder, too, in which a model was only evaluated.
        "remove the file if no checkpoint there belongs to it",
        f"Received: {left}, now for BERT",
    )


def test_another_network(job, fails):
    """No weight's shape tells how many heads there are."""
    job.output.mkdir()
    shutil.copy(job.folder / "bert.json", job.output / "bert_config.json")
    (job.output / "model.ckpt-1.index").touch()
    job.configure(num_attention_heads=2)
    fails(lambda: train(job, 2), "num_attention_heads of the configuration must be 4,")


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("name", ("model_dir", "init_checkpoint"))
def test_what_it_began_from_may_be_removed(job, name):
    """As before a long second phase, to make room; the folder still has all that is needed."""
    first = job.folder / "first"
    assert train(job, 1, output_dir=first) == 0
    start = {name: first}
    if name == "model_dir":
        start |= {"bert_config_file": None, "vocab_file": None}
    assert train(job, 1, **start) == 0
    for path in first.glob("model.ckpt-*"):
        path.unlink()
    assert train(job, 2, **start) == 0
    assert list_checkpoints(job.output) == [1, 2]


RATE, BIAS = 0.003, "bert/encoder/layer_0/intermediate/dense/bias"


@pytest.mark.usefixtures("eagerly")
def test_bias_correction_of_two_updates(job):
    """The first with it; a run that is resumed may change it, as it may change the optimizer."""
    before = np.zeros(SIZES["intermediate_size"])  # a bias, which does not decay
    for number, corrects in ((1, True), (2, False)):
        assert train(job, number, learning_rate=RATE, bias_correction=corrects) == 0
        settings = ModelFolder(str(job.output)).stages[-1]["settings"]
        assert settings["bias_correction"] is corrects
        found = arrays(job.output, number)
        first, second = (found[f"{BIAS}/adam_{each}"].astype(np.float64) for each in "mv")
        if corrects:  # 1 - 0.9, 1 - 0.999
            first, second = first / 0.1, second / 0.001
        # The rate falls to zero: half of it is left for the second of two updates.
        update = RATE / number * first / (np.sqrt(second) + 1e-6)
        assert np.abs(update).max() > RATE / 10
        np.testing.assert_allclose(before - found[BIAS], update, rtol=0, atol=1e-7)
        before = found[BIAS]


@pytest.fixture
def classifier(tmp_path):
    """A job of run_classifier with all splits."""
    return ClassifierJob(tmp_path).with_sentences(64, 16, 11)


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_as_one_that_was_not(tmp_path, prints, monkeypatch):
    """With dropout, several steps in one go; to the last bit."""
    classifier = ClassifierJob(tmp_path, **DROPOUT).with_sentences()
    flags = {"train_step": 12, "save_checkpoints_steps": 5}
    assert classifier.run(**flags, output_dir=tmp_path / "whole") == 0
    stop = functools.partial(classifier.stop, monkeypatch, signal.SIGTERM, 7)
    assert "the same command continues from there" in prints(stop, **flags, steps_per_loop=3)
    assert list_checkpoints(classifier.output)[-1] < 12
    assert "resuming from" in prints(classifier.run, **flags, steps_per_loop=3)
    assert_same(arrays(classifier.output, 12), arrays(tmp_path / "whole", 12))


@pytest.mark.usefixtures("eagerly")
def test_several_seeds(classifier, prints):
    """Of a part of the examples, which all of them draw alike."""
    flags = {"num_seeds": 2, "random_seed": 3, "max_train_examples": 20}
    assert "passes over 20 examples" in prints(classifier.run, **flags, train_step=1, do_eval=True)
    header, *rows = read_table(classifier.output / "seeds.tsv")
    assert header == ["name", "mean", "standard deviation", "3", "4"]
    found = [results(classifier.output / f"seed-{seed}") for seed in (3, 4)]
    assert found[0]["eval_loss"] != found[1]["eval_loss"]
    table = {name: list(map(float, cells)) for name, *cells in rows}
    for name in ("eval_accuracy", "eval_loss", "test_macro_f1"):
        values = [each[name] for each in found]
        expected = [np.mean(values), np.std(values, ddof=1), *values]
        assert table[name] == pytest.approx(expected, abs=1e-6)
    weights = [arrays(classifier.output / f"seed-{seed}", 1) for seed in (3, 4)]
    name = "bert/embeddings/word_embeddings"
    assert (weights[0][name] != weights[1][name]).any()


@pytest.mark.usefixtures("eagerly")
def test_seeds_go_on_with_the_classes_that_they_began_with(classifier, fails):
    """As a single training does, whatever the training file holds by then."""
    flags = {"num_seeds": 2, "train_step": 1, "do_eval": True}
    assert classifier.run(**flags) == 0
    rows = [(text, {"bad": "low", "good": "high"}[label]) for text, label in single_rows(60)]
    splits = {"train": (0, 40), "dev": (40, 50), "test": (50, 60)}
    write_splits(classifier.data, ["text", "label"], rows, **splits)
    said = "the label must be one of bad, good. Received: 'low'"
    fails(classifier.run, said, **{**flags, "train_step": 2})


@pytest.mark.usefixtures("eagerly")
def test_a_command_with_spaces_between_labels_resumes(classifier):
    for step in (1, 2):
        assert classifier.run(labels="bad, good", train_step=step) == 0
    assert classifier.again(do_eval=True, labels=" bad ,good") == 0


@pytest.mark.usefixtures("eagerly")
def test_weights_without_the_task_s_head_are_not_evaluated(classifier, fails):
    """The training's command line without --do_train, which Google's program would accept."""
    start = classifier.folder / "start.ckpt"
    stored = {n: v.numpy() for n, v in google_variables(tiny_model(**ONE_LAYER)).items()}
    write_arrays(str(start), {**stored, "cls/squad/output_bias": np.zeros(2, np.float32)})
    found = f"must be fine-tuned, with the task's head. Received: {start} without output_"
    for hint in ("", f" (without --init_checkpoint, {classifier.output}/model.ckpt-1 is used)"):
        flags = {"init_checkpoint": start, "labels": "good,bad"}
        said = found.replace(". Received", f"{hint}. Received")
        fails(classifier.run, said, **flags, do_train=False, do_eval=True)
        assert classifier.run(**flags, train_step=1) == 0
    assert classifier.again(do_eval=True) == 0


@pytest.mark.usefixtures("eagerly")
def test_seeds_beside_a_training_begin_from_the_given_weights(classifier, prints):
    """A single training in the same folder does not resume as one of them."""
    first = classifier.folder / "first"
    assert classifier.run(train_step=1, output_dir=first) == 0
    flags = {"model_dir": first, "bert_config_file": None, "vocab_file": None, "train_step": 1}
    assert classifier.run(**flags) == 0
    start = f"starting from --init_checkpoint: {first}/model.ckpt-1"
    assert prints(classifier.run, **flags, num_seeds=2, do_eval=True).count(start) == 2
