"""One training at a time writes to a folder, and notices when somebody removes it."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from unittest import mock

import pytest
import tensorflow as tf

from bert_tf.checkpoint_files import list_checkpoints
from bert_tf.optimization import OPTIMIZERS
from bert_tf.summaries.reporter import Reporter
from bert_tf.training import state
from bert_tf.training.interfaces import TrainingData
from bert_tf.training.interruptions.output_folder import LOCK_FILE, TrainingFolder
from bert_tf.training.loop import TrainingConfig, train
from tests.support.paths import ROOT
from tests.support.programs import (
    NO_DROPOUT,
    ClassifierJob,
    PretrainingJob,
    arrays,
    assert_same,
    curves,
    one_line,
    spoken_lines,
    texts,
    wait_for_checkpoint,
)
from tests.support.task_data import single_rows, write_splits
from tests.support.tiny_models import ONE_LAYER, random_batch, tensors, tiny_model


@pytest.fixture
def job(tmp_path):
    return PretrainingJob(tmp_path, **NO_DROPOUT)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The output directory of ten updates that nothing happened to."""
    job = PretrainingJob(tmp_path_factory.mktemp("whole"), **NO_DROPOUT)
    assert job.run(num_train_steps=10) == 0
    return job.output


def content(folder):
    """Everything in a folder but the lock, with the time of its last change."""
    paths = [path for path in folder.rglob("*") if path.name != LOCK_FILE]
    return {path: path.stat().st_mtime_ns for path in paths}


def test_a_second_training_is_refused_before_it_writes(job, whole, capsys):
    shutil.copytree(whole, job.output)
    with TrainingFolder(job.output):
        unfinished = job.output / "model.ckpt-12.tmp-77.index"
        unfinished.touch()  # as that training writes its next checkpoint
        before = content(job.output)
        assert job.run() == 1
        line = one_line(capsys)
        assert "no other training writes to" in line
        assert f"{job.output}, locked by process {os.getpid()} on " in line
        assert content(job.output) == before
        # An evaluation alone reads.
        assert job.run(do_train=False, do_eval=True) == 0
        assert unfinished.exists()
    assert job.run(num_train_steps=11) == 0
    assert not unfinished.exists()
    assert list_checkpoints(job.output) == [4, 8, 10, 11]


@pytest.mark.slow
def test_fine_tuning_locks_every_seed_s_folder(tmp_path, capsys):
    job = ClassifierJob(tmp_path)
    rows = single_rows(24)
    write_splits(job.data, ("text", "label"), rows, train=(0, 16), dev=(16, 24))
    assert job.run(train_step=1) == 0
    with TrainingFolder(job.output), TrainingFolder(job.output / "seed-2"):
        before = content(job.output)
        capsys.readouterr()
        assert job.run(train_step=4) == 1
        assert f"{job.output}, locked by process" in one_line(capsys)
        flags = {"num_seeds": 2, "random_seed": 1, "train_step": 4, "do_eval": True}
        assert job.run(**flags) == 1
        assert f"{job.output}/seed-2, locked by process" in one_line(capsys)
        assert set(content(job.output)) - {job.output / "seed-1"} == set(before)
        assert job.run(do_train=False, do_eval=True) == 0


def test_the_lock_of_a_killed_process_is_free(tmp_path):
    program = (
        "import os, sys; from bert_tf.training.interruptions.output_folder import TrainingFolder\n"
        "with TrainingFolder(sys.argv[1]): os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, tmp_path], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / LOCK_FILE).read_text().startswith("process ")
    with TrainingFolder(tmp_path):
        assert f"process {os.getpid()} on " in (tmp_path / LOCK_FILE).read_text()


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    warned = pytest.warns(UserWarning, match="cannot be locked .No locks available.: take care")
    with warned, TrainingFolder(tmp_path):
        pass


def at_step(monkeypatch, step, function):
    """Calls the function after `step` updates, before their point is drawn."""
    steps, waiting = Reporter.steps, [function]

    def with_call(self, last_step, metrics):
        if last_step >= step and waiting:
            waiting.pop()()
        steps(self, last_step, metrics)

    monkeypatch.setattr(Reporter, "steps", with_call)


SLOW = [pytest.param(how, marks=pytest.mark.slow) for how in ("emptied", "removed")]


@pytest.mark.parametrize("how", ("renamed", *SLOW))
def test_a_folder_that_is_gone_is_made_again(job, whole, monkeypatch, capsys, how):
    """Nothing is lost but what was removed; the run ends as it would have."""
    moved = job.folder / "moved"

    def remove():
        wait_for_checkpoint()
        if how == "renamed":
            job.output.rename(moved)
        elif how == "removed":
            shutil.rmtree(job.output)
        else:  # rm -r output/*, which leaves hidden files
            for path in job.output.glob("[!.]*"):
                path.unlink()

    at_step(monkeypatch, 5, remove)
    held_out = job.folder / "part-*.tfrecord" if how == "emptied" else None
    assert job.run(num_train_steps=10, eval_input_file=held_out) == 0
    (line,) = spoken_lines(capsys.readouterr().err)
    assert line.startswith(f"warning: {job.output} was removed or renamed while training")
    assert "after step 6 " in line
    assert list_checkpoints(job.output) == [8, 10]
    found, expected = arrays(job.output, 10), arrays(whole, 10)
    evaluated = [each.pop("evaluated_step") for each in (found, expected)]
    assert evaluated == [10 if held_out else 0, 0]
    assert_same(found, expected)
    assert json.loads((job.output / "bert_config.json").read_text())["hidden_size"] == 32
    expected = curves(whole)["loss/total"]
    assert curves(job.output)["loss/total"] == [point for point in expected if point[0] >= 6]
    assert [step for step, _ in texts(job.output, "configuration")] == [6]
    if how == "renamed":
        assert list_checkpoints(moved) == [4]
        assert curves(moved)["loss/total"] == [point for point in expected if point[0] < 6]


def test_a_folder_without_other_files_is_made_again(tmp_path, monkeypatch):
    """As in a program that uses `train` without a function that writes them."""
    output = tmp_path / "output"
    model = tiny_model(**ONE_LAYER)
    optimizer = OPTIMIZERS["adamw"](1e-3)
    optimizer.build(model.trainable_variables)
    data = mock.Mock(TrainingData)
    data.batches.return_value = tf.data.Dataset.from_tensors(tensors(random_batch(0))).repeat()
    config = TrainingConfig(
        output_dir=str(output), train_batch_size=8, num_train_steps=2, save_checkpoints_steps=1,
        xla="off",
    )  # fmt: skip

    def remove():
        wait_for_checkpoint()
        shutil.rmtree(output)

    at_step(monkeypatch, 2, remove)
    running = state.TrainingState(model, optimizer)
    warned = pytest.warns(UserWarning, match="was removed or renamed while training")
    with warned, TrainingFolder(output) as folder:
        train(running, tf.distribute.get_strategy(), data, config, folder=folder)
    assert list_checkpoints(output) == [2]


@pytest.mark.slow
def test_a_folder_that_is_gone_while_a_checkpoint_is_written(job, whole, monkeypatch, capsys):
    write_arrays = state.write_arrays

    def remove_amid_writing(prefix, arrays):
        if prefix.endswith("-4"):
            shutil.rmtree(job.output)
            raise OSError(errno.EIO, "cannot write the checkpoint", prefix)
        write_arrays(prefix, arrays)

    monkeypatch.setattr(state, "write_arrays", remove_amid_writing)
    at_step(monkeypatch, 5, wait_for_checkpoint)
    assert job.run(num_train_steps=10) == 0
    (line,) = spoken_lines(capsys.readouterr().err)
    assert line.startswith(f"warning: {job.output} was removed or renamed while training")
    assert list_checkpoints(job.output) == [8, 10]
    assert_same(arrays(job.output, 10), arrays(whole, 10))


@pytest.mark.slow
def test_a_folder_that_is_another_training_s_now(job, whole, monkeypatch, capsys):
    """Removed, and a new run was begun there: the older one ends beside it, saved."""
    other = TrainingFolder(job.output)

    def begin_anew():
        wait_for_checkpoint()
        shutil.rmtree(job.output)
        other.__enter__()

    at_step(monkeypatch, 5, begin_anew)
    flags = {"num_train_steps": 10}
    assert job.run(**flags) == 1
    assert content(job.output) == {}
    other.__exit__()
    aside = job.folder / "output-step-6"
    line = one_line(capsys)
    assert f"{job.output}, locked by process {os.getpid()} on " in line
    assert f"saved in {aside}; continue with --output_dir={aside}" in line
    assert job.run(**flags, output_dir=aside) == 0
    assert list_checkpoints(aside) == [6, 8, 10]
    assert_same(arrays(aside, 10), arrays(whole, 10))


@pytest.mark.slow
def test_a_folder_that_cannot_be_made_again(job, whole, monkeypatch, capsys):
    """As when its disk has gone: the weights are saved where temporary files are."""
    parent, kept = job.folder / "disk", job.folder / "tmp"
    kept.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(kept))

    def lose():
        shutil.rmtree(parent)
        parent.write_text("")

    at_step(monkeypatch, 7, lose)
    assert job.run(num_train_steps=10, output_dir=parent / "output") == 1
    aside = kept / "output-step-8"
    line = one_line(capsys)
    assert "cannot be recreated (Not a directory)" in line
    assert f"saved in {aside}; continue with --output_dir={aside}" in line
    assert_same(arrays(aside, 8), arrays(whole, 8))
