"""A model in memory with everything that an export writes beside its weights."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """A model of any folder that this project reads.

    Attributes:
        model: a `bert_tf.PretrainingModel`, or a fine-tuned model (`bert_tf.encoder.EncoderModel`).
        task: what it was trained for, a key of `TASKS`.
        model_type: "bert" or "albert".
        config: its `BertConfig` or `AlbertConfig`.
        tokenizer: its tokenizer, or None.
        settings: what a fine-tuned model's folder records; empty for a pre-trained one.
        trained_positions: the number of positions that were trained; None if unknown.
        source: the folder or file that it comes from, for messages.
    """

    model: object
    task: str
    model_type: str
    config: object
    tokenizer: object
    settings: dict
    trained_positions: int | None
    source: str


TASKS = ("pretraining", "classification", "ner", "question_answering", "multiple_choice")
