"""Plans which records are in which batch: one endless order of records, cut into global batches.

The order depends on the seed and on the position alone. Shapes: G records of a global batch.
"""

import dataclasses

import tensorflow as tf

from bert_tf.input.length_buckets import WINDOW, sort_windows
from create_pretraining_data.records.reader import compression_of, count_records

# Records in the shuffle buffer, besides the shuffled order of the files: at 128 tokens a record
# about 50 MB. (google-research/bert has 100, which leaves neighbours together.)
SHUFFLE_BUFFER = 20_000

# Files read alternately, so that a batch mixes them.
CYCLE_LENGTH = 16


@dataclasses.dataclass(frozen=True)
class BatchPlan:
    """Determines which records each global training batch contains."""

    files: list  # paths of TFRecord files
    record_format: object  # their `RecordFormat`
    model_config: object  # the model's configuration, for the checks of ids
    examples: int  # how many records the files hold, as `check_records` counts them
    batch_size: int  # examples of a global batch
    # Decides the order and, of records without masks, the masks, together with the position.
    seed: int
    # Lengths that batches are cut to, see `bert_tf.input.length_buckets`; empty: no batch is cut.
    boundaries: tuple = ()
    # Step and position of the first batch in this order, see `bert_tf.input.data_order`.
    order_start: tuple = (0, 0)

    def locate_batch(self, step):
        """Locates the batch that follows `step` batches: its window's position, its index there.

        Without boundaries, each batch is a window.
        """
        first_step, first_position = self.order_start
        batches = step - first_step
        index = batches % WINDOW if self.boundaries else 0
        return first_position + (batches - index) * self.batch_size, index

    def in_order(self, read, position):
        """A dataset of the endless order of training, from a position on.

        Args:
            read: from the index of a file to a dataset with an element for each of its records.
            position: how many of these elements to skip.
        """
        count = len(self.files)

        def one_epoch(epoch):
            order = tf.cast(self.seed, tf.int64) * 1_000_003 + epoch  # another seed, another series
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
        epoch, rest = divmod(position, self.examples)
        return tf.data.Dataset.counter(start=epoch).flat_map(one_epoch).skip(rest)

    def numbered_records(self, position):
        """The serialized records in this order: a dataset of (position, record)."""
        paths, compression = tf.constant(self.files), compression_of(self.files[0])

        def read(file):
            return tf.data.TFRecordDataset(tf.gather(paths, file), compression)

        return self.in_order(read, position).enumerate(start=position)

    def sorted_windows(self, position):
        """What `sort_windows` makes of these records, from the position of a window on."""
        records = self.numbered_records(position)
        return sort_windows(
            records, self.record_format, self.batch_size, self.boundaries, self.seed
        )


def step_records(plan, step):
    """The records of the global batch that follows `step` batches of a `BatchPlan`.

    Returns:
        A list of (file, number of the record from 1), in the order of the batch.
    """
    files = plan.files
    counts = tf.constant([count_records(path) for path in files], tf.int64)

    def read_numbers(file):
        return tf.data.Dataset.range(1, tf.gather(counts, file) + 1).map(lambda n: (file, n))

    start, index = plan.locate_batch(step)
    size = WINDOW * plan.batch_size if plan.boundaries else plan.batch_size
    names = list(plan.in_order(read_numbers, start).take(size))
    chosen = range(plan.batch_size)
    if plan.boundaries:  # which batch of its window a record is in depends on the lengths
        record_positions, _, _ = next(plan.sorted_windows(start).skip(index).as_numpy_iterator())
        chosen = record_positions - start
    return [(files[int(file)], int(number)) for file, number in (names[i] for i in chosen)]
