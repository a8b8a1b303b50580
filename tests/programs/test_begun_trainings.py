"""What a training does in the folder of an earlier one, in pre-training and in fine-tuning."""

import shutil

import pytest

from bert_tf.checkpoint_files import list_checkpoints
from tests.support.programs import ClassifierJob, PretrainingJob, one_line
from tests.support.task_data import single_rows, write_splits

# A program's job -> the flags for a number of updates.
UPDATES = {
    PretrainingJob: lambda count: {"num_train_steps": count, "num_warmup_steps": 0},
    ClassifierJob: lambda count: {"train_step": count},
}


@pytest.fixture(params=UPDATES, ids=lambda job_class: job_class.__name__)
def job(request, tmp_path):
    """A job of each program."""
    job = request.param(tmp_path)
    if request.param is ClassifierJob:
        write_splits(job.data, ["text", "label"], single_rows(16), train=(0, 16))
    return job


def train(job, updates, **flags):
    """The exit status of a training of so many updates."""
    return job.run(**UPDATES[type(job)](updates), **flags)


def test_another_kind_of_model(job, capsys):
    """Left from a training that was stopped at once; beside both files no program could read it."""
    job.output.mkdir()
    left = shutil.copy(job.folder / "albert.json", job.output / "albert_config.json")
    assert train(job, 1) == 1
    line = one_line(capsys)
    assert "must not hold another kind of model" in line
    # The words fit a folder, too, in which a model was only evaluated.
    assert "remove the file if no checkpoint there belongs to it" in line
    assert f"Received: {left}, now for BERT" in line


def test_another_network(job, capsys):
    """No weight's shape tells how many heads there are."""
    job.output.mkdir()
    shutil.copy(job.folder / "bert.json", job.output / "bert_config.json")
    (job.output / "model.ckpt-1.index").touch()
    job.configure(num_attention_heads=2)
    assert train(job, 2) == 1
    assert "num_attention_heads of the configuration must be 4," in one_line(capsys)


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
