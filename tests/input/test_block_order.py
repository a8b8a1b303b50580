"""The order of records: every record once in a pass, entered anywhere."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.input import block_order
from bert_tf.input.batch_plan import BatchPlan, read_blocks
from bert_tf.input.block_order import LANES, BlockOrder
from bert_tf.input.pipeline import training_dataset
from bert_tf.input.record_checks import explain_failure
from create_pretraining_data.records.metadata import sidecar_path
from create_pretraining_data.records.reader import count_records
from tests.support.crosses import but_slow
from tests.support.record_files import FORMAT, assert_same_batches, describe, make_files
from tests.support.tiny_models import tiny_model

CONFIG = tiny_model().config
READ = [((7, 20, 13), 9), ((41,), 50_000), ((3,) * 20, 9), ((7, 20, 13), 50_000), ((41,), 9)]
# One record, one file, uneven files, fewer and more files than lanes.
SETS = ((1,), (40,), (7, 20, 13), (300, 2, 1), (1,) * 40, tuple(range(1, 40)))


@pytest.fixture
def blocks_of(monkeypatch):
    """A function that sets the number of records in a block."""

    def set_size(records):
        block_order._get_pass.cache_clear()
        monkeypatch.setattr(block_order, "BLOCK", records)

    yield set_size
    block_order._get_pass.cache_clear()


@pytest.mark.parametrize("size", (1, 7, 8, 50, 1000))
@pytest.mark.parametrize("counts", SETS)
def test_a_pass_is_every_record_once_and_can_be_entered_anywhere(blocks_of, counts, size):
    blocks_of(size)
    order = BlockOrder(counts, seed=3)
    whole = order.names(0, 3 * order.total)
    every = [(file, n + 1) for file, count in enumerate(counts) for n in range(count)]
    passes = [whole[i : i + order.total] for i in range(0, 3 * order.total, order.total)]
    assert [sorted(one) for one in passes] == [every] * 3
    if order.total > 10 and size > 1:
        assert passes[0] != passes[1] != passes[2] and passes[0] != every
        assert BlockOrder(counts, seed=4).names(0, order.total) != passes[0]
    for position in np.random.default_rng(size).integers(0, 2 * order.total, 12).tolist():
        found = order.names(position, order.total)
        assert found == whole[position : position + order.total]


@pytest.mark.parametrize("counts, size", but_slow(READ, READ[:2]))
def test_what_is_read_is_what_the_order_names(tmp_path, blocks_of, counts, size):
    blocks_of(size)
    files = make_files(tmp_path, counts)
    contents = {
        (file, number): record
        for file, path in enumerate(files)
        for number, record in enumerate(tf.data.TFRecordDataset(path).as_numpy_iterator(), 1)
    }
    order = BlockOrder(counts, seed=1)
    for start in (0, 1, order.total - 1, order.total, 2 * order.total + 17):
        dataset = read_blocks(order, files, start).rebatch(order.total)
        positions, records = next(dataset.as_numpy_iterator())
        assert positions.tolist() == list(range(start, start + order.total))
        assert records.tolist() == [contents[name] for name in order.names(start, order.total)]


def test_it_shuffles_as_well_as_a_buffer_of_20_000_records():
    """How far records move, and how many of a batch come from the same place."""
    order = BlockOrder((25_000,) * 32, seed=1)
    names = np.array(order.names(0, 200_000))  # four blocks of 3125 records from 16 files
    lanes = {file: lane for lane, file in enumerate(order.get_pass(0).lanes[0].files)}
    assert len(lanes) == 2  # one after the other
    sizes = np.bincount(names[:256, 0], minlength=32)
    assert (sizes > 0).sum() == LANES and sizes.max() < 40
    # In the order of the files, record n of a file was number 16 n of those read alternately.
    moved = names[:, 1] * LANES - np.arange(200_000)
    assert moved.std() > 0.98 * 20_000
    # Neighbours of a file in one batch of 256, of which a buffer of 20,000 has 0.64 %.
    batch = {tuple(name): i // 256 for i, name in enumerate(names.tolist())}
    together = [batch.get((file, n + 1)) == at for (file, n), at in batch.items()]
    assert np.mean(together) < 0.0064


def test_large_sets_are_entered_at_once():
    order = BlockOrder((400_000,) * 256, seed=1)
    start = time.perf_counter()
    assert len(order.names(99_123_456, 4096)) == 4096
    assert time.perf_counter() - start < 5
    parts, ends = order.parts(*order.locate(99_123_456)[:2])
    first = np.concatenate([[0], ends[:-1]])
    assert (parts[first, 1] > 0).all() and not np.delete(parts, first, axis=0)[:, 1].any()


def write_count(files, count):
    """Writes a number of records into the JSON file of one record file."""
    describe(files[0], FORMAT)
    path = Path(sidecar_path(files[0]))
    description = json.loads(path.read_text())
    description["shards"][0]["records"] = count
    path.write_text(json.dumps(description))


def test_records_are_counted_by_their_description(tmp_path):
    files = make_files(tmp_path, (40,))

    def read(batches):
        dataset = training_dataset(BatchPlan(files, FORMAT, CONFIG, 8, 1))
        return list(dataset.take(batches).as_numpy_iterator())

    expected = read(5)
    write_count(files, 40)
    assert count_records(files[0]) == 40
    assert_same_batches(read(5), expected)
    write_count(files, 41)
    assert count_records(files[0]) == 41
    with pytest.raises(tf.errors.InvalidArgumentError):
        read(6)
    message = str(explain_failure(files, FORMAT, CONFIG))
    assert "41" in message and "40" in message and files[0] in message
