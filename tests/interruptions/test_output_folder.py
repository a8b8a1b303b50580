"""One training at a time writes to a folder, which a checkpoint makes again if it is removed."""

import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from bert_tf.checkpoint_files import list_checkpoints
from bert_tf.summaries.reporter import Reporter
from bert_tf.training.interruptions.output_folder import LOCK_FILE, lock_folder
from tests.support.crosses import slow
from tests.support.paths import ROOT
from tests.support.programs import (
    NO_DROPOUT,
    ClassifierJob,
    PretrainingJob,
    arrays,
    assert_same,
    one_line,
    wait_for_checkpoint,
)
from tests.support.task_data import single_rows, write_splits


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
    with lock_folder(job.output):
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
    with lock_folder(job.output), lock_folder(job.output / "seed-2"):
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
        "import os, sys; from bert_tf.training.interruptions.output_folder import lock_folder\n"
        "with lock_folder(sys.argv[1]): os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", program, tmp_path], cwd=ROOT)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / LOCK_FILE).read_text().startswith("process ")
    with lock_folder(tmp_path):
        assert f"process {os.getpid()} on " in (tmp_path / LOCK_FILE).read_text()


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    warned = pytest.warns(UserWarning, match="cannot be locked .No locks available.: take care")
    with warned, lock_folder(tmp_path):
        pass


@pytest.mark.parametrize("how", ("renamed", slow("removed")))
def test_the_next_checkpoint_makes_a_folder_again(job, whole, monkeypatch, capsys, how):
    steps, moved = Reporter.steps, job.folder / "moved"

    def remove_once(self, last_step, metrics):
        if last_step == 6:
            wait_for_checkpoint()
            if how == "renamed":
                job.output.rename(moved)
            else:
                shutil.rmtree(job.output)
        steps(self, last_step, metrics)

    monkeypatch.setattr(Reporter, "steps", remove_once)
    assert job.run(num_train_steps=10, steps_per_loop=1) == 0
    assert list_checkpoints(job.output) == [8, 10]
    assert_same(arrays(job.output, 10), arrays(whole, 10))
    # The same command writes the other files again.
    assert not (job.output / "bert_config.json").exists()
    assert job.run(num_train_steps=10) == 0
    assert "already at step 10" in capsys.readouterr().out
    assert json.loads((job.output / "bert_config.json").read_text())["hidden_size"] == 32
