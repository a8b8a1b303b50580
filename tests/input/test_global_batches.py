"""Global batches are the same however many workers share them, from any step on, and known."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.length_buckets import BUCKET, WINDOW
from bert_tf.input.pipeline import training_dataset
from create_pretraining_data.instances.mask_processes import MaskProcesses
from tests.support.crosses import slow
from tests.support.record_files import (
    DYNAMIC,
    FORMAT,
    LAYOUTS,
    PACKED,
    PACKED_DYNAMIC,
    assert_same_batches,
    different_lengths,
    global_batches,
    make_files,
    workers,
)
from tests.support.tiny_models import tiny_model

CONFIG = tiny_model().config
COUNTS, BATCH = (47, 60, 43), 4

# The format of the records, whether they are batched by length, whether processes draw masks.
KINDS = {
    "masked": (FORMAT, False, False),
    "packed": (PACKED, False, False),
    "unmasked": (DYNAMIC, False, False),
    "packed, unmasked": (PACKED_DYNAMIC, False, False),
    "by length": (FORMAT, True, False),
    "unmasked, by length": (DYNAMIC, True, False),
    "by processes": (DYNAMIC, False, True),
    "packed, by processes": (PACKED_DYNAMIC, False, True),
}
QUICK = ("masked", "packed, unmasked", "unmasked, by length", "packed, by processes")


@pytest.fixture(scope="module")
def processes():
    with MaskProcesses(2) as started:
        yield started


@pytest.fixture(params=[kind if kind in QUICK else slow(kind) for kind in KINDS])
def plan(request, tmp_path, processes):
    """A function that plans batches; without `alone` processes draw masks, where they do."""
    record_format, by_length, with_processes = KINDS[request.param]
    change = different_lengths if record_format is FORMAT else None
    files = make_files(tmp_path, COUNTS, record_format, change=change)

    def make(alone=False, batch_size=BATCH, start=(0, 0), is_cut=by_length):
        boundaries = (6, 9, 12, 16) if is_cut else ()
        shared = processes if with_processes and not alone else None
        return BatchPlan(files, record_format, CONFIG, batch_size, 1, boundaries, start, shared)

    return make


def arrays(dataset, count):
    return list(dataset.take(count).as_numpy_iterator())


def ids(batches):
    """Which records the batches hold: the first piece is a record's number modulo 60."""
    return [batch["input_ids"][:, 0].tolist() for batch in batches]


# The last in the second epoch and the fourth window.
@pytest.mark.parametrize("start_step", (*map(slow, (0, WINDOW - 1, WINDOW)), 3 * WINDOW + 5))
@pytest.mark.parametrize("count, replicas", LAYOUTS)
def test_workers_share_the_global_batch(plan, count, replicas, start_step):
    """From a step on they read what one worker reads who begins at the first."""
    batches = 30
    expected = arrays(training_dataset(plan(alone=True)), start_step + batches)[start_step:]
    datasets = [training_dataset(plan(), start_step, shard) for shard in workers(count, replicas)]
    for dataset in datasets:
        sizes = {spec.shape[0] for name, spec in dataset.element_spec.items() if name != BUCKET}
        assert sizes == {BATCH // replicas}
        assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    if BUCKET in expected[0]:  # of which every worker has one for a batch
        datasets = [d.map(lambda b: {**b, BUCKET: b[BUCKET][None]}) for d in datasets]
    found = global_batches(datasets, replicas // count, batches)
    for batch, whole in zip(found, expected, strict=True):
        assert np.all(batch.pop(BUCKET, 0) == whole.pop(BUCKET, 0))
    assert_same_batches(found, expected)


@pytest.mark.parametrize("step, start", (slow(0, (0, 0)), (20, (0, 0)), (25, (7, 31))))
def test_the_records_of_a_step_are_known(plan, step, start):
    files = plan().files
    first = dict(zip(files, np.cumsum((0, *COUNTS)), strict=False))
    numbers = [int(first[path] + n - 1) % 60 for path, n in plan(start=start).names(step)]
    assert [numbers] == ids(arrays(training_dataset(plan(start=start), step), 1))
    assert {path for path, _ in plan(batch_size=40).names(0)} == set(files)


def test_an_order_that_begins_later(plan):
    """What follows its beginning is what follows that position with any other batch size."""
    plain = training_dataset(plan(batch_size=1, is_cut=False), 31)
    expected = sum(ids(arrays(plain, WINDOW * BATCH)), [])
    found = sum(ids(arrays(training_dataset(plan(start=(7, 31)), 7), WINDOW)), [])
    if plan().boundaries:  # shared out by length within a window
        assert found != expected
        found, expected = sorted(found), sorted(expected)
    assert found == expected
