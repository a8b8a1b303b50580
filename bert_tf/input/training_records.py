"""Feeds the records of create_pretraining_data to the training loop."""

import dataclasses
from typing import TYPE_CHECKING, Self

import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.data_order import continue_order, sizes_of
from bert_tf.input.pipeline import training_dataset
from bert_tf.input.record_checks import explain_failure
from create_pretraining_data.instances.mask_processes import MaskProcesses
from create_pretraining_data.records.record_format import RecordFormat

if TYPE_CHECKING:  # both are in a higher layer
    from bert_tf.training.loop import TrainingConfig
    from bert_tf.training.state import TrainingState


@dataclasses.dataclass(frozen=True)
class TrainingRecords:
    """The `TrainingData` of pre-training, with `BatchPlan`'s fields known before training."""

    files: list[str]
    record_format: RecordFormat
    examples: int
    model_config: EncoderConfig
    order_start: tuple[int, int] = (0, 0)
    mask_processes: MaskProcesses | None = None

    def in_order(self, state: "TrainingState", config: "TrainingConfig") -> Self:
        """Implements `TrainingData.in_order`."""
        data = int(sizes_of(self.files), 16)
        order_start = continue_order(state, config, self.examples, data)
        return dataclasses.replace(self, order_start=order_start)

    def batches(
        self, strategy: tf.distribute.Strategy, config: "TrainingConfig", start_step: int
    ) -> tf.distribute.DistributedDataset:
        """Implements `TrainingData.batches`."""
        plan = self._plan(config)
        # The workers' pipelines keep batches ready in host memory (`prefetch`, as many as tf.data
        # finds useful). A strategy also copies one batch ahead to each device, except the default
        # strategy, whose step copies its own batch.
        return strategy.distribute_datasets_from_function(
            lambda context: training_dataset(plan, start_step, context)
        )

    def names(self, config: "TrainingConfig", step: int) -> list[str]:
        """Returns the names of the records in the batch after `step` batches."""
        return [f"{file}:{number}" for file, number in self._plan(config).names(step)]

    def explain_failure(self) -> InputError | None:
        """Returns an InputError that names a damaged record; None if all files are intact."""
        if self.mask_processes and self.mask_processes.failure:
            return self.mask_processes.failure
        return explain_failure(self.files, self.record_format, self.model_config)

    def _plan(self, config):
        return BatchPlan(
            self.files,
            self.record_format,
            self.model_config,
            batch_size=config.train_batch_size,
            seed=config.seed,
            boundaries=config.bucket_boundaries,
            order_start=self.order_start,
            mask_processes=self.mask_processes,
        )
