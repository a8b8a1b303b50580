"""What a training does in the folder of an earlier one, in pre-training and in fine-tuning."""

import shutil

import numpy as np
import pytest

from bert_tf.checkpoint_files import list_checkpoints
from model_formats.model_folder import ModelFolder
from tests.support.programs import NO_DROPOUT, ClassifierJob, PretrainingJob, arrays
from tests.support.tiny_models import SIZES

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
