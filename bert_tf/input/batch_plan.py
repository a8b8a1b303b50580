"""Plans which records are in which batch: one endless order of records, cut into global batches.

The order depends on the seed and on the position alone. Shapes: G records of a global batch.
"""

import dataclasses

import tensorflow as tf

from bert_tf.config import EncoderConfig
from bert_tf.input.block_order import BlockOrder
from bert_tf.input.block_reading import read_blocks
from bert_tf.input.length_buckets import WINDOW, sort_windows
from create_pretraining_data.instances.mask_processes import MaskProcesses
from create_pretraining_data.records.reader import count_records
from create_pretraining_data.records.record_format import RecordFormat


@dataclasses.dataclass(frozen=True)
class BatchPlan:
    """Determines which records each global training batch contains."""

    files: list[str]  # paths of TFRecord files
    record_format: RecordFormat  # their `RecordFormat`
    model_config: EncoderConfig  # the model's configuration, for the checks of ids
    batch_size: int  # examples of a global batch
    # Decides the order and, of records without masks, the masks, together with the position.
    seed: int
    # Lengths that batches are cut to, see `bert_tf.input.length_buckets`; empty: no batch is cut.
    boundaries: tuple[int, ...] = ()
    # Step and position of the first batch in this order, see `bert_tf.input.data_order`.
    order_start: tuple[int, int] = (0, 0)
    # The `MaskProcesses` that mask records without masks; None for this process.
    mask_processes: MaskProcesses | None = None

    def locate_batch(self, step: int) -> tuple[int, int]:
        """Locates the batch that follows `step` batches: its window's position, its index there.

        Without boundaries, each batch is a window.
        """
        first_step, first_position = self.order_start
        batches = step - first_step
        index = batches % WINDOW if self.boundaries else 0
        return first_position + (batches - index) * self.batch_size, index

    def batches(self, step: int) -> tf.data.Dataset:
        """The batches after `step` batches: a dataset of (positions [G], records [G]).

        With boundaries the number of the batch's boundary comes third.
        """
        position, index = self.locate_batch(step)
        if not self.boundaries:
            return self._records(position, self.batch_size)
        return self._sorted_windows(position).skip(index)

    def names(self, step: int) -> list[tuple[str, int]]:
        """The file, and the number in it from 1, of each record of the batch after `step` ones."""
        start, index = self.locate_batch(step)
        size = WINDOW * self.batch_size if self.boundaries else self.batch_size
        names = self._block_order().names(start, size)
        if self.boundaries:  # which batch of its window a record is in depends on the lengths
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
        """The order from a position on: a dataset of (positions [size], records [size])."""
        # Much faster than to cut blocks into records first.
        return read_blocks(self._block_order(), self.files, position).rebatch(size)

    def _block_order(self):
        return BlockOrder(tuple(map(count_records, self.files)), self.seed)
