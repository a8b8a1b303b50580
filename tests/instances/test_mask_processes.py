"""Processes that draw masks: the same masks, one clear error, none left behind."""

import concurrent.futures
import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.pipeline import training_dataset
from create_pretraining_data.instances import mask_processes
from create_pretraining_data.instances.mask_processes import MaskProcesses
from tests.support.create_data_runs import is_alive, until
from tests.support.paths import ROOT
from tests.support.programs import NO_DROPOUT, PretrainingJob, arrays, spoken_lines
from tests.support.record_files import (
    DYNAMIC,
    PACKED_DYNAMIC,
    assert_same_batches,
    global_batches,
    make_files,
)
from tests.support.refusals import refused
from tests.support.tiny_models import tiny_model

CONFIG = tiny_model().config
COUNTS = (7, 20, 13)


def test_a_pipeline_that_outlives_them_goes_on(tmp_path):
    """It may still prefetch while the program ends, which must not print errors."""
    files = make_files(tmp_path, COUNTS, DYNAMIC)
    plan = BatchPlan(files, DYNAMIC, CONFIG, 4, seed=1)
    expected = global_batches([training_dataset(plan)], 1, 400)
    with MaskProcesses(2) as started:
        batches = iter(training_dataset(dataclasses.replace(plan, mask_processes=started)))
        found = [next(batches)]
    found += [next(batches) for _ in range(399)]
    arrays_of = [{name: value.numpy() for name, value in batch.items()} for batch in found]
    assert_same_batches(arrays_of, expected)


PARENT = """
from create_pretraining_data.instances.mask_processes import MaskProcesses
with MaskProcesses(2) as started:
    print(*(process.pid for process in started._processes), flush=True)
    input()
"""


def test_they_end_with_a_killed_parent():
    command, pipe = [sys.executable, "-c", PARENT], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe) as parent:
        ids = list(map(int, parent.stdout.readline().split()))
        assert len(ids) == 2 and all(map(is_alive, ids))
        for process_id in ids:  # signals to the whole group are the parent's affair
            os.kill(process_id, signal.SIGINT)
            os.kill(process_id, signal.SIGTERM)
        time.sleep(0.5)
        assert all(map(is_alive, ids))
        parent.kill()
    until(lambda: not any(map(is_alive, ids)))


def test_a_process_that_dies_is_one_error(tmp_path):
    """For every thread that waits, not only for the one whose work it had."""
    files = make_files(tmp_path, COUNTS, DYNAMIC)
    plan = BatchPlan(files, DYNAMIC, CONFIG, 4, seed=1)
    with MaskProcesses(2) as started:
        batches = iter(training_dataset(dataclasses.replace(plan, mask_processes=started)))
        next(batches)
        for process in started._processes:
            process.send_signal(signal.SIGKILL)
        with pytest.raises(tf.errors.InvalidArgumentError, match="must start and stay alive"):
            for _ in range(10_000):
                next(batches)
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            for found in [threads.submit(started.draw_masks) for _ in range(4)]:
                assert isinstance(found.exception(timeout=60), ValueError)
        message = str(started.failure)
    assert "one was killed" in message and "--mask_processes=0" in message


def test_an_error_in_a_process_is_that_of_a_bad_record():
    """The process lives on, so that the records are searched for the bad one, until it is left."""
    with MaskProcesses(2) as started:
        ids = [process.pid for process in started._processes]
        for _ in range(2):
            with pytest.raises(ValueError, match="TypeError: "):
                started.draw_masks("too few arguments")
        assert started.failure is None and all(map(is_alive, ids))
    assert not any(map(is_alive, ids))


def test_a_process_that_cannot_start(monkeypatch):
    monkeypatch.setattr(mask_processes, "_PROGRAM", "import nothing_of_this_name")
    with refused("exit status 1: ModuleNotFoundError"), MaskProcesses(2):
        pass


@pytest.mark.slow
def test_training_with_processes_is_bit_equal(tmp_path, capsys, monkeypatch):
    """Through the program; and a process that dies while it trains is one line."""
    job = PretrainingJob(tmp_path, **NO_DROPOUT)
    files = make_files(tmp_path, COUNTS, DYNAMIC)
    flags = {"input_file": ",".join(files), "num_train_steps": 3}
    assert job.run(**flags) == 0
    assert job.run(**flags, mask_processes=2, output_dir=tmp_path / "two") == 0
    one, two = arrays(job.output, 3), arrays(tmp_path / "two", 3)
    assert set(one) == set(two)
    for name, value in one.items():
        assert value.tobytes() == two[name].tobytes(), name
    capsys.readouterr()
    enter = MaskProcesses.__enter__

    def enter_and_kill(started):
        enter(started)
        for process in started._processes:
            process.kill()
        return started

    monkeypatch.setattr(MaskProcesses, "__enter__", enter_and_kill)
    assert job.run(**flags, mask_processes=1, output_dir=tmp_path / "killed") == 1
    said = spoken_lines(capsys.readouterr().err)
    assert len(said) == 1 and "--mask_processes=0" in said[0] and "one was killed" in said[0]


def test_masks_are_the_same_for_any_rows_at_a_time(tmp_path, monkeypatch):
    """Rows are masked independently of those masked with them."""
    files = make_files(tmp_path, COUNTS, PACKED_DYNAMIC)
    plan, found = BatchPlan(files, PACKED_DYNAMIC, CONFIG, 4, seed=1), []
    for rows in (1, 12, 128):
        monkeypatch.setattr("bert_tf.input.pipeline.ROWS_AT_A_TIME", rows)
        found.append(global_batches([training_dataset(plan)], 1, 12))
        assert_same_batches(found[-1], found[0])
    assert np.concatenate([batch["masked_lm_weights"] for batch in found[0]]).any()
