"""The records of create_pretraining_data as what a model is trained on."""

import dataclasses

from bert_tf.data_order import number_of_boundaries, sizes_of, take_over_order
from bert_tf.input_pipeline import distribute_training, step_records
from bert_tf.record_checks import explain_failure


@dataclasses.dataclass(frozen=True)
class TrainingRecords:
    """Records to train on, as `check_records` found them.

    Attributes:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        examples: how many records they hold.
        model_config: the model's configuration, for the checks of ids.
        begins: the step and the position at which their `DataOrder` begins.
    """

    files: list
    record_format: object
    examples: int
    model_config: object
    begins: tuple = (0, 0)

    def in_order(self, state, config):
        """These records in the order of a run that begins, or goes on from a checkpoint.

        Args:
            state: the restored `TrainingState`; it takes the order over.
            config: the `TrainingConfig`.

        Returns:
            `TrainingRecords`.
        """
        begins = take_over_order(
            state,
            config.train_batch_size,
            config.seed,
            self.examples,
            number_of_boundaries(config.bucket_boundaries),
            int(sizes_of(self.files), 16),
        )
        return dataclasses.replace(self, begins=begins)

    def batches(self, strategy, config, start_step):
        """The batches of a `TrainingConfig` from a step on, to every replica its own."""
        return distribute_training(
            strategy,
            self.files,
            self.record_format,
            self.model_config,
            self.examples,
            config.train_batch_size,
            config.seed,
            start_step,
            config.bucket_boundaries,
            self.begins,
        )

    def names(self, config, step):
        """The names of the examples of the batch that follows `step` batches."""
        found = step_records(
            self.files,
            self.record_format,
            self.examples,
            config.train_batch_size,
            config.seed,
            step,
            config.bucket_boundaries,
            self.begins,
        )
        return [f"{file}:{number}" for file, number in found]

    def explain_failure(self):
        """The InputError that names a damaged record, or None if all files are whole."""
        return explain_failure(self.files, self.record_format, self.model_config)
