"""Reads records from files in the order of `bert_tf.input.block_order`.

Shapes: L lanes, P parts of files, R records of a block.
"""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from bert_tf.input.block_order import BlockOrder
from create_pretraining_data.records.reader import compression_of


def read_blocks(order: BlockOrder, files: Sequence[str], position: int) -> tf.data.Dataset:
    """The serialized records in the endless order, from a position on.

    A dataset of (positions [R], records [R]), a block each; the first one may be cut.
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
    return blocks.prefetch(1)  # reads the next block meanwhile


def _read_pass(order, files, number, first_block):
    """Reads a pass from the beginning of a block on: a dataset of (positions [R], records [R])."""
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
        """The lane's records in each block, [at most its share]: strings."""
        own = tf.data.Dataset.from_tensor_slices(parts[starts[lane] : ends[lane]])
        records = own.flat_map(read_part).batch(shares[lane])
        # A short lane may be over before the last block.
        nothing = tf.data.Dataset.from_tensors(np.zeros(0, "S1")).repeat()
        return records.concatenate(nothing).take(blocks - first_block)

    def shuffle(block, records):
        places = tf.ensure_shape(
            tf.numpy_function(order.places, [number, block], tf.int64, stateful=False), [None]
        )
        start = tf.numpy_function(order.start, [number, block], tf.int64, stateful=False)
        # Fails if a file has other records than were counted.
        shuffled = tf.dynamic_stitch([tf.cast(places, tf.int32)], [records.flat_values])  # [R]
        return tf.ensure_shape(start, []) + tf.range(tf.size(shuffled, tf.int64)), shuffled

    lanes = tf.size(shares, tf.int64)
    turns = tf.data.Dataset.range(lanes).interleave(read_lane, cycle_length=lanes)
    numbers = tf.data.Dataset.range(first_block, blocks)
    return tf.data.Dataset.zip(numbers, turns.ragged_batch(lanes)).map(shuffle)
