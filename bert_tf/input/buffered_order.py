"""The order of records in runs that older versions began: that of TensorFlow's shuffle buffer.

A checkpoint of such a run continues in this order, see `bert_tf.input.data_order`. To resume, all
records of the pass before the position are read.
"""

import tensorflow as tf

# Records in the shuffle buffer, besides the shuffled order of the files.
SHUFFLE_BUFFER = 20_000

# Files read alternately, so that a batch mixes them.
CYCLE_LENGTH = 16


def buffered_order(count, examples, seed, read, position):
    """A dataset of the endless order, from a position on.

    Args:
        count: the number of files.
        examples: the number of their records.
        seed: decides the order.
        read: from the index of a file to a dataset with an element for each of its records.
        position: how many of these elements to skip.
    """

    def one_epoch(epoch):
        order = tf.cast(seed, tf.int64) * 1_000_003 + epoch  # another seed, another series
        indices = tf.data.Dataset.range(count).shuffle(
            count, seed=order, reshuffle_each_iteration=False
        )
        records = indices.interleave(
            read,
            cycle_length=min(CYCLE_LENGTH, count),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return records.shuffle(SHUFFLE_BUFFER, seed=order, reshuffle_each_iteration=False)

    # Whole epochs are skipped without being read.
    epoch, rest = divmod(position, examples)
    return tf.data.Dataset.counter(start=epoch).flat_map(one_epoch).skip(rest)
