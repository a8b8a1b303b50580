"""A model in memory with everything that an export writes beside its weights."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bert_tf.config import EncoderConfig
    from bert_tf.encoder import EncoderModel
    from model_formats.model_folder import ModelFolder
    from tokenization.loading import Tokenizer

from bert_tf.checkpoint import part_names


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """A model of any folder that this project reads.

    Attributes:
        model: a `bert_tf.PretrainingModel`, an `electra_tf.ReplacedTokensModel`, or a fine-tuned
            model (`bert_tf.encoder.EncoderModel`).
        task: what it was trained for, a key of `finetuning.tasks.TASKS`, or
            "pretraining".
        model_type: a key of `model_formats.encoders.ENCODERS`.
        config: its configuration.
        tokenizer: its tokenizer, or None.
        labels: the names of its classes in order, for NER its tags; empty for other tasks and for
            regression.
        missing: Google's names of the weights that its folder lacks, which have random values: all
            of a pre-training head's, or of the pooler's.
        settings: what a fine-tuned model's folder records; empty for a pre-trained one.
        trained_positions: the number of positions that were trained; None if unknown.
        source: the checkpoint that it was loaded from.
        folder: the `ModelFolder` with its configuration and its records.
    """

    model: "EncoderModel"
    task: str
    model_type: str
    config: "EncoderConfig"
    tokenizer: "Tokenizer | None"
    labels: tuple[str, ...]
    missing: tuple[str, ...]
    settings: dict[str, Any]
    trained_positions: int | None
    source: str
    folder: "ModelFolder"

    def lacks_part(self, part: str) -> bool:
        """Whether folder or model lacks a part, such as "pooler"."""
        names = part_names(self.model, part)
        return not names or any(name in self.missing for name in names)

    def head_outputs(self) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        """What the heads whose weights it has compute."""
        outputs = self.model.head_outputs().items()
        return {name: o.compute for name, o in outputs if not any(map(self.lacks_part, o.parts))}

    @property
    def fills_masks(self) -> bool:
        """Whether it predicts masked words: by its own head, or by an ELECTRA's generator."""
        return self.task == "pretraining" and not self.lacks_part("masked_lm")
