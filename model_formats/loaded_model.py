"""A model in memory with everything that an export writes beside its weights."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """A model of any folder that this project reads.

    Attributes:
        model: a `bert_tf.PretrainingModel`, or a fine-tuned model (`bert_tf.encoder.EncoderModel`).
        task: what it was trained for, a key of `finetuning.tasks.TASKS`, or
            "pretraining".
        model_type: "bert" or "albert".
        config: its `BertConfig` or `AlbertConfig`.
        tokenizer: its tokenizer, or None.
        labels: the names of its classes in order, for NER its tags; empty for other tasks and for
            regression.
        missing: Google's names of the weights that its folder lacks, which have random values: all
            of a pre-training head's, or of the pooler's.
        settings: what a fine-tuned model's folder records; empty for a pre-trained one.
        trained_positions: the number of positions that were trained; None if unknown.
        source: the checkpoint that it was loaded from.
        folder: the folder with its configuration and its records.
    """

    model: object
    task: str
    model_type: str
    config: object
    tokenizer: object
    labels: tuple
    missing: tuple
    settings: dict
    trained_positions: int | None
    source: str
    folder: str

    def lacks(self, prefix):
        """Whether the folder had no weights whose names in Google's files begin with `prefix`."""
        return any(name.startswith(prefix) for name in self.missing)
