"""Assigns records to batches by cutting one endless order of records into global batches.

The order depends only on the seed and the position.

Shapes: G records of a global batch, L lanes, P parts of files, R records of a block.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.config import EncoderConfig
from bert_tf.input.block_order import BlockOrder
from bert_tf.input.length_buckets import WINDOW, sort_windows
from create_pretraining_data.instances.mask_processes import MaskProcesses
from create_pretraining_data.records.reader import compression_of, count_records
from create_pretraining_data.records.record_format import RecordFormat


@dataclasses.dataclass(frozen=True)
class BatchPlan:
    """Determines which records each global training batch contains."""

    files: list[str]  # paths of TFRecord files
    record_format: RecordFormat  # the files' format
    model_config: EncoderConfig  # the model's configuration, for the checks of ids
    batch_size: int  # examples per global batch
    # Determines the order, and with the position the masks of records without masks.
    seed: int
    # The lengths to which batches are cut, see `bert_tf.input.length_buckets`; empty for none.
    boundaries: tuple[int, ...] = ()
    # Step and position of the first batch in this order, see `bert_tf.input.data_order`.
    order_start: tuple[int, int] = (0, 0)
    # The processes that mask records without masks; None to mask them in this process.
    mask_processes: MaskProcesses | None = None

    def locate_batch(self, step: int) -> tuple[int, int]:
        """Returns the position of a window, and the index in it of the batch after `step` batches.

        Without boundaries, each batch is a window.
        """
        first_step, first_position = self.order_start
        batches = step - first_step
        index = batches % WINDOW if self.boundaries else 0
        return first_position + (batches - index) * self.batch_size, index

    def batches(self, step: int) -> tf.data.Dataset:
        """Returns the batches after `step` batches, a dataset of (positions [G], records [G]).

        With boundaries, the batch's boundary number is a third element.
        """
        position, index = self.locate_batch(step)
        if not self.boundaries:
            return self._records(position, self.batch_size)
        return self._sorted_windows(position).skip(index)

    def names(self, step: int) -> list[tuple[str, int]]:
        """Returns each record's (file, number from 1) in the batch after `step` batches."""
        start, index = self.locate_batch(step)
        size = WINDOW * self.batch_size if self.boundaries else self.batch_size
        names = self._block_order().names(start, size)
        if self.boundaries:  # a record's batch in the window depends on the lengths
            batches = self._sorted_windows(start).skip(index)
            positions, _, _ = next(batches.as_numpy_iterator())
            names = [names[position - start] for position in positions]
        return [(self.files[file], number) for file, number in names]

    def _sorted_windows(self, position):
        windows = self._records(position, WINDOW * self.batch_size)
        return sort_windows(
            windows, self.record_format, self.batch_size, self.boundaries, self.seed
        )

    def _records(self, position, size):
        """Returns the order from a position on, as (positions [size], records [size])."""
        # Much faster than splitting blocks into records first.
        return read_blocks(self._block_order(), self.files, position).rebatch(size)

    def _block_order(self):
        return BlockOrder(tuple(map(count_records, self.files)), self.seed)


def read_blocks(order: BlockOrder, files: Sequence[str], position: int) -> tf.data.Dataset:
    """Reads the serialized records in the endless order, starting at a position.

    Returns a dataset of blocks (positions [R], records [R]), of which the first may be cut.
    """
    first_pass, first_block, skipped = order.locate(position)

    def one_pass(number):
        first = tf.where(number == first_pass, tf.constant(first_block, tf.int64), 0)
        return _read_pass(order, files, number, first)

    def cut(positions, records):
        begin = tf.maximum(position - positions[0], 0)
        return positions[begin:], records[begin:]

    blocks = tf.data.Dataset.counter(start=first_pass, dtype=tf.int64).flat_map(one_pass)
    if skipped:
        blocks = blocks.map(cut)
    return blocks.prefetch(1)  # reads the next block in advance


def _read_pass(order, files, number, first_block):
    """Reads a pass from a block on, as a dataset of (positions [R], records [R])."""
    paths, compression = tf.constant(files), compression_of(files[0])

    def plan(number, first_block):
        one = order.get_pass(number)
        return (
            np.array([lane.share for lane in one.lanes]),  # [L]
            np.int64(len(one.starts) - 1),  # blocks of the pass
            *order.parts(number, int(first_block)),
        )

    types = [tf.int64] * 4
    shapes: tuple[list[int | None], ...] = ([None], [], [None, 3], [None])
    planned = tf.numpy_function(plan, [number, first_block], types, stateful=False)
    shares, blocks, parts, ends = map(tf.ensure_shape, planned, shapes)
    starts = tf.concat([[0], ends[:-1]], axis=0)  # [L]

    def read_part(part):
        records = tf.data.TFRecordDataset(tf.gather(paths, part[0]), compression)
        return records.skip(part[1]).take(part[2])

    def read_lane(lane):
        """Returns the lane's records in each block, strings [at most its share]."""
        own = tf.data.Dataset.from_tensor_slices(parts[starts[lane] : ends[lane]])
        records = own.flat_map(read_part).batch(shares[lane])
        # A short lane may end before the last block.
        nothing = tf.data.Dataset.from_tensors(np.zeros(0, "S1")).repeat()
        return records.concatenate(nothing).take(blocks - first_block)

    def shuffle(block, records):
        places = tf.ensure_shape(
            tf.numpy_function(order.places, [number, block], tf.int64, stateful=False), [None]
        )
        start = tf.numpy_function(order.start, [number, block], tf.int64, stateful=False)
        # Fails if the number of records differs from the counted one.
        shuffled = tf.dynamic_stitch([tf.cast(places, tf.int32)], [records.flat_values])  # [R]
        return tf.ensure_shape(start, []) + tf.range(tf.size(shuffled, tf.int64)), shuffled

    lanes = tf.size(shares, tf.int64)
    turns = tf.data.Dataset.range(lanes).interleave(read_lane, cycle_length=lanes)
    numbers = tf.data.Dataset.range(first_block, blocks)
    return tf.data.Dataset.zip(numbers, turns.ragged_batch(lanes)).map(shuffle)
