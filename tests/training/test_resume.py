"""A run that was stopped, killed, or lost its newest checkpoint ends as one that was not."""

import errno
import os
import resource
import shutil
import signal

import numpy as np
import pytest

from bert_tf.checkpoint_files import checkpoint_path, list_checkpoints, remove_checkpoint
from bert_tf.summaries.reporter import Reporter
from bert_tf.training import loop as training
from tests.support.crosses import slow
from tests.support.programs import (
    DROPOUT,
    HARD,
    NO_DROPOUT,
    RUN,
    PretrainingJob,
    arrays,
    assert_curves_continue,
    assert_same,
    curves,
    one_line,
    wait_for_checkpoint,
)
from tests.support.record_files import DYNAMIC
from tests.support.tiny_models import training_config


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The output directory of `RUN` on such a job, never stopped."""
    job = PretrainingJob(tmp_path_factory.mktemp("whole"), **DROPOUT)
    assert job.run(**RUN) == 0
    return job.output


def assert_ended_as(whole, output):
    last = list_checkpoints(whole)[-1]
    assert list_checkpoints(output)[-1] == last
    assert_same(arrays(output, last), arrays(whole, last))


@pytest.mark.slow
def test_masks_and_lengths_continue_too(tmp_path, capsys):
    """Masks that training draws, batches by length."""
    job = PretrainingJob(tmp_path, DYNAMIC, **NO_DROPOUT)
    flags = {**RUN, "bucket_boundaries": "8,12", "steps_per_loop": 3, "train_batch_size": 4}
    whole = tmp_path / "whole"
    assert job.run(**flags, output_dir=whole) == 0
    assert min(share for _, share in curves(whole)["data/padding_share"]) < 0.15
    job.kill("step", 8, **flags)
    assert job.run(**flags) == 0
    assert "steps 7 to 20" in capsys.readouterr().out
    assert_ended_as(whole, job.output)
    assert_curves_continue(job.output, whole)


@pytest.mark.slow
@pytest.mark.usefixtures("optimized_graphs")
@pytest.mark.parametrize("name", ("xla", "all"))
def test_five_kills(job, name):
    """kill -9 before the first checkpoint, between two, and while one gets its name.

    Under XLA alone, and with parts, loops, recomputation and two devices as well.
    """
    changes = {"xla": HARD["xla"], "all": {k: v for each in HARD.values() for k, v in each.items()}}
    flags = {**RUN, "num_train_steps": 40, **changes[name]}
    untouched = job.folder / "untouched"
    assert job.run(**flags, output_dir=untouched) == 0
    steps = np.sort(np.random.default_rng(2).choice(np.arange(2, 40), 3, replace=False))
    kills = [("any", int(step)) for step in steps] + [("index", 6), ("index", 24)]
    done = 0
    for number, (where, step) in enumerate(sorted(kills, key=lambda kill: kill[1])):
        job.kill(where, step, **{**flags, "steps_per_loop": (1, 3, 5)[number % 3]})
        saved = max(list_checkpoints(job.output), default=0)
        assert done <= saved <= step and saved % 6 == 0
        done = saved
    assert done > 6
    assert job.run(**{**flags, "steps_per_loop": 3}) == 0
    assert_ended_as(untouched, job.output)
    assert_curves_continue(job.output, untouched)
    assert not list(job.output.glob("*.tmp-*"))


@pytest.mark.parametrize(
    "number, loop", (slow(signal.SIGTERM, 1), slow(signal.SIGHUP, 1), (signal.SIGINT, 3))
)
def test_a_signal_ends_the_run_after_the_step(job, whole, capsys, monkeypatch, number, loop):
    assert job.stop(monkeypatch, number, 8, **RUN, steps_per_loop=loop) == 0
    step = {1: 8, 3: 9}[loop]
    assert list_checkpoints(job.output) == [6, step]
    last_line = capsys.readouterr().out.splitlines()[-1]
    assert last_line == (
        f"stopped by {number.name} after step {step} of 20, saved in {job.output}: the same "
        "command continues from there"
    )
    assert job.run(**RUN) == 0
    assert f"resuming from {job.output}/model.ckpt-{step}," in capsys.readouterr().out
    assert_ended_as(whole, job.output)
    steps = [at for at, _ in curves(job.output)["loss/total"]]
    assert steps == sorted({3, 6, step, 9, 12, 15, 18, 20})


@pytest.mark.usefixtures("eagerly")
def test_a_signal_while_the_last_checkpoint_is_written(job, capsys, monkeypatch):
    """Nothing follows, such as an evaluation that compiles for minutes; the next start makes it."""
    flags = {"num_train_steps": 1, "num_warmup_steps": 0, "do_eval": True}
    start_saving = training.start_saving

    def with_signal(*arguments):
        write = start_saving(*arguments)
        return lambda: (write(), os.kill(os.getpid(), signal.SIGTERM))

    kept = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(training, "start_saving", with_signal)
            assert job.run(**flags) == 0
    finally:
        signal.signal(signal.SIGTERM, kept)
    assert "\nstopped by SIGTERM after step 1 of 1, saved in" in (out := capsys.readouterr().out)
    assert "evaluating" not in out and list_checkpoints(job.output) == [1]
    assert job.run(**flags) == 0
    assert "\nevaluating on 40 records" in capsys.readouterr().out


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


DAMAGE = {
    "data cut": (".data-00000-of-00001", cut),
    "index cut": (".index", cut),
    "index empty": (".index", lambda path: os.truncate(path, 0)),
    "no data": (".data-00000-of-00001", os.remove),
}


# In the quick run one that trains nothing.
@pytest.mark.parametrize("name, last", (("data cut", 18), *(slow(name, 20) for name in DAMAGE)))
def test_a_damaged_checkpoint(job, whole, capsys, name, last):
    """The one before is used, with a warning; if there is none, that is one line."""
    suffix, damage = DAMAGE[name]
    shutil.copytree(whole, job.output)
    damage(checkpoint_path(job.output, 20) + suffix)
    assert job.run(**{**RUN, "num_train_steps": last}) == 0
    shown = capsys.readouterr()
    warned = [line for line in shown.err.splitlines() if "warning: " in line]
    assert len(warned) == 1 and "model.ckpt-20: " in warned[0]
    assert warned[0].endswith("going back to the checkpoint before")
    line = f"resuming from {job.output}/model.ckpt-18, the newest checkpoint in the output"
    assert line in shown.out and "that can be read" in shown.out
    if last == 20:
        assert_ended_as(whole, job.output)
    for step in (6, 12, 18):
        for path in job.output.glob(f"model.ckpt-{step}.*"):
            path.unlink()
    damage(checkpoint_path(job.output, 20) + suffix)
    assert job.run(**RUN) == 1
    assert "model.ckpt-20: " in one_line(capsys)


@pytest.mark.slow
def test_a_damaged_checkpoint_is_not_kept_for_a_good_one(job, whole, monkeypatch):
    """It would count as the newest of them until training has passed it.

    Nor is it lost: what could not be read may have been the file system's fault.
    """
    shutil.copytree(whole, job.output)
    for step in (12, 18, 20):
        cut(checkpoint_path(job.output, step) + ".data-00000-of-00001")
    flags = {**RUN, "keep_checkpoint_max": 1, "save_checkpoints_steps": 1}
    assert job.stop(monkeypatch, signal.SIGTERM, 8, **flags) == 0
    assert list_checkpoints(job.output) == [8]
    aside = {path.name for path in job.output.glob("unreadable-*")}
    suffixes = ("index", "data-00000-of-00001", "meta")
    assert aside == {f"unreadable-model.ckpt-{n}.{s}" for n in (12, 18, 20) for s in suffixes}
    assert job.run(**flags) == 0
    assert_ended_as(whole, job.output)


@pytest.mark.slow
def test_a_disk_that_is_full_at_a_checkpoint(job, whole, capsys):
    """The limit on a file's size stands in for the disk: one line, nothing half-written."""
    shutil.copytree(whole, job.output)
    for step in (12, 18, 20):
        remove_checkpoint(checkpoint_path(job.output, step))
    size = max(path.stat().st_size for path in job.output.glob("model.ckpt-*.data-*"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, limits[1]))
    try:
        assert job.run(**RUN) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert one_line(capsys).startswith("error: cannot write the checkpoint")
    assert list_checkpoints(job.output) == [6]
    assert not list(job.output.glob("*.tmp-*"))
    assert job.run(**RUN) == 0
    assert_ended_as(whole, job.output)


@pytest.mark.usefixtures("eagerly")
def test_a_checkpoint_that_cannot_be_written_ends_the_run_soon(job, capsys, monkeypatch):
    """Not at the next checkpoint, which may be due in an hour and would not be written either."""

    def full():
        raise OSError(errno.ENOSPC, "No space left on device", "model.ckpt-2")

    report, seen = Reporter.steps, []

    def steps(self, last_step, metrics):
        wait_for_checkpoint()
        seen.append(last_step)
        report(self, last_step, metrics)

    monkeypatch.setattr(training, "start_saving", lambda *_: full)
    monkeypatch.setattr(Reporter, "steps", steps)
    assert job.run(save_checkpoints_steps=2, num_train_steps=8) == 1
    assert "No space left on device: model.ckpt-2" in one_line(capsys) and seen[-1] <= 3


@pytest.mark.slow
def test_two_devices_resume_as_one(job):
    """Six steps on two devices, two more on one: equal to eight on two."""
    job.configure(**NO_DROPOUT)
    flags = {"num_train_steps": 8, "save_checkpoints_steps": 6, "xla": "off"}
    whole, export = job.folder / "whole", job.folder / "export"
    assert job.run(**flags, distribution_strategy="mirrored", output_dir=whole) == 0
    shutil.copytree(whole, job.output)
    for path in job.output.glob("model.ckpt-8.*"):
        path.unlink()
    assert job.run(**flags, distribution_strategy="one_device", export_dir=export) == 0
    one, two = arrays(job.output, 8), arrays(whole, 8)
    for name, value in one.items():
        np.testing.assert_allclose(value, two[name], atol=1e-5, err_msg=name)
    for name, value in arrays(export).items():
        np.testing.assert_array_equal(value, one[name], err_msg=name)


def test_few_steps_at_a_time_where_a_step_is_slow():
    """A signal waits for the steps under way."""
    config = training_config(num_train_steps=1000, steps_per_loop=10, save_checkpoints_steps=500)
    known = {0: 1, 0.001: 10, 1.0: 10, 2.0: 5, 60.0: 1}
    for seconds, count in known.items():
        assert training.steps_until_stop(100, config, seconds) == count, seconds
    assert training.steps_until_stop(498, config, 0.001) == 2
