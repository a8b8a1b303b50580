"""run_pretraining on two workers of this machine: whole runs, stops, kills, disagreement."""

import os
import signal

import numpy as np
import pytest

from bert_tf.checkpoint_files import list_checkpoints
from bert_tf.training.interruptions.output_folder import LOCK_FILE, lock_folder
from tests.support import programs
from tests.support.paths import ROOT
from tests.support.programs import (
    DROPOUT,
    NO_DROPOUT,
    PretrainingJob,
    arrays,
    assert_same,
    curves,
    spoken_lines,
)
from tests.support.record_files import DYNAMIC, FORMAT, PACKED_DYNAMIC
from tests.support.workers import DEADLINE, start_workers, wait_for

PROGRAM = ROOT / "run_pretraining.py"

RUN = {
    **programs.RUN, "distribution_strategy": "multi_worker", "num_train_steps": 12,
    "save_checkpoints_steps": 4, "save_summary_steps": 4,
}  # fmt: skip


def train(job, name, **flags):
    """Two workers train to the end; returns what each wrote."""
    command = [PROGRAM, *job.argv(**{**RUN, **flags})[1:]]
    with start_workers(command, job.folder / name) as workers:
        wait_for(workers)
        return [(worker.stdout, spoken_lines(worker.stderr)) for worker in workers]


def signal_to_one(job, name, step, victim=1):
    """The arguments of two workers, of which one gets a signal."""
    flags = job.argv(**RUN)[1:]
    with_signal = (programs.__file__, name, "step", step)
    return lambda index: [*(with_signal if index == victim else (PROGRAM,)), *flags]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The output directory of `RUN` on such a job, never stopped."""
    job = PretrainingJob(tmp_path_factory.mktemp("whole"), **DROPOUT)
    train(job, "never_stopped")
    return job.output


@pytest.mark.slow
@pytest.mark.parametrize(
    "record_format, boundaries", ((FORMAT, None), (PACKED_DYNAMIC, None), (DYNAMIC, "8,12"))
)
def test_two_workers_are_as_one_device(tmp_path, record_format, boundaries):
    """The same weights, evaluation and export; the second worker shows and writes none."""
    job = PretrainingJob(tmp_path, record_format, **NO_DROPOUT)
    flags = {"num_train_steps": 6, "do_eval": True, "export_dir": job.folder / "export"}
    flags |= {
        "max_seq_length": record_format.max_seq_length,
        "max_predictions_per_seq": record_format.max_predictions_per_seq,
        "bucket_boundaries": boundaries,
    }
    (chief_out, chief_err), (out, err) = train(job, "logs", **flags)
    assert "training on 2 workers with 1 CPU each" in chief_out and chief_err == []
    assert "8 examples per update (4 per device)" in chief_out
    assert "***** Eval results *****" in chief_out and "exported to" in chief_out
    assert out.endswith("waiting for all of 2 workers\n") and err == []
    assert len(list(job.output.glob("events.out.tfevents.*"))) == 1
    one = job.folder / "one"
    alone = {**RUN, **flags, "distribution_strategy": "one_device", "output_dir": one}
    assert job.run(**alone) == 0
    two_arrays, one_arrays = arrays(job.output, 6), arrays(one, 6)
    for name, value in one_arrays.items():
        np.testing.assert_allclose(two_arrays[name], value, atol=1e-5, err_msg=name)
    for name in ("loss/total", "accuracy/masked_lm", "data/padding_share"):
        expected = [(step, pytest.approx(value)) for step, value in curves(one)[name]]
        assert curves(job.output)[name] == expected
    assert list(arrays(job.folder / "export")) and (job.output / "eval_results.txt").exists()


@pytest.mark.slow
def test_a_signal_to_one_ends_both_after_the_same_step(job, whole):
    with start_workers(signal_to_one(job, "SIGTERM", 6), job.folder / "stopped") as workers:
        wait_for(workers)
        chief, other = workers
        assert chief.stdout.splitlines()[-1].startswith("stopped by ")
        assert other.stdout.endswith("waiting for all of 2 workers\n")
    step = list_checkpoints(job.output)[-1]
    assert 6 <= step <= 8 and f"after step {step} of 12" in chief.stdout
    (out, _), _ = train(job, "again")
    assert f"resuming from {job.output}/model.ckpt-{step}," in out
    assert_same(arrays(job.output, 12), arrays(whole, 12))


@pytest.mark.slow
@pytest.mark.parametrize("victim", (0, 1))
def test_a_killed_worker_ends_the_other_which_says_why(job, whole, victim):
    command = signal_to_one(job, "SIGKILL", 6, victim)
    with start_workers(command, job.folder / "killed") as workers:
        survivor = workers[1 - victim]
        assert workers[victim].process.wait(DEADLINE) == -signal.SIGKILL, survivor.tail()
        wait_for([survivor], status=1)  # ten seconds on an idle machine
        (line,) = spoken_lines(survivor.stderr)
        assert line.startswith("error: another worker has stopped")
        assert "restart all workers with the same command" in line
    assert list_checkpoints(job.output) == [4]
    (out, _), _ = train(job, "again")
    assert f"resuming from {job.output}/model.ckpt-4," in out
    assert_same(arrays(job.output, 12), arrays(whole, 12))


@pytest.mark.slow
def test_workers_that_were_started_differently(job):
    """Flags, and configurations of the same name; both workers end with the same line."""
    folder = job.folder / "other"
    folder.mkdir()
    other = PretrainingJob(folder, hidden_size=64)
    same = {**RUN, "input_file": job.files[0], "output_dir": job.output}
    flags = [job.argv(**same)[1:], other.argv(**same, train_batch_size=6)[1:]]
    with start_workers(lambda index: [PROGRAM, *flags[index]], job.folder / "logs") as workers:
        wait_for(workers, status=1)
        lines = [spoken_lines(worker.stderr) for worker in workers]
    assert lines[0] == lines[1] and len(lines[0]) == 1
    (line,) = lines[0]
    assert line.startswith("error: all workers must be started with the same flags and files")
    assert "--train_batch_size is 8 at worker 0, 6 at worker 1" in line
    assert "hidden_size of the configuration is 32 at worker 0, 64 at worker 1" in line
    assert list_checkpoints(job.output) == []


@pytest.mark.slow
def test_where_another_training_writes_both_end_with_the_same_line(job):
    with (
        lock_folder(job.output),
        start_workers([PROGRAM, *job.argv(**RUN)[1:]], job.folder / "logs") as workers,
    ):
        wait_for(workers, status=1)
        lines = [spoken_lines(worker.stderr) for worker in workers]
    assert lines[0] == lines[1] and len(lines[0]) == 1
    assert f"{job.output}, locked by process {os.getpid()} on " in lines[0][0]
    assert list(job.output.iterdir()) == [job.output / LOCK_FILE]
