"""Holds a model in memory together with everything that an export writes besides its weights."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bert_tf.checkpoint import part_names
from model_formats.encoders import ENCODERS, Encoder
from model_formats.training_record import Stage, without_paths

if TYPE_CHECKING:
    from bert_tf.config import EncoderConfig
    from bert_tf.encoder import EncoderModel
    from model_formats.model_folder import ModelFolder
    from tokenization.loading import Tokenizer


@dataclasses.dataclass(frozen=True)
class LoadedModel:
    """A model from any folder that this project reads."""

    # A `bert_tf.PretrainingModel`, an `electra_tf.ReplacedTokensModel`, or a fine-tuned model.
    model: "EncoderModel"
    task: str  # its task, a key of `finetuning.tasks.TASKS`, or "pretraining"
    model_type: str  # a key of `model_formats.encoders.ENCODERS`
    config: "EncoderConfig"
    tokenizer: "Tokenizer | None"
    # The names of its classes in order, for NER its tags; empty for other tasks and for regression.
    labels: tuple[str, ...]
    # Google's names of the weights that its folder lacks, which have random values: all weights of
    # a pre-training head or of the pooler.
    missing: tuple[str, ...]
    settings: dict[str, Any]  # the recorded settings of a fine-tuned model; else empty
    trained_positions: int | None  # the number of trained positions; None if unknown
    source: str  # the checkpoint that it was loaded from
    folder: "ModelFolder"  # the folder with its configuration and records

    @property
    def encoder(self) -> Encoder:
        """The `Encoder` of its model type."""
        return ENCODERS[self.model_type]

    @property
    def stages(self) -> list[Stage]:
        """The stages of its training, as an export records them."""
        return without_paths(self.folder.stages)

    def lacks_part(self, part: str) -> bool:
        """Returns True if the folder or the model lacks a part, such as "pooler"."""
        names = part_names(self.model, part)
        return not names or any(name in self.missing for name in names)

    def head_outputs(self) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        """Returns the output functions of all heads whose weights were loaded, by output name."""
        outputs = self.model.head_outputs().items()
        return {name: o.compute for name, o in outputs if not any(map(self.lacks_part, o.parts))}

    @property
    def fills_masks(self) -> bool:
        """Whether it predicts masked words, with its own head or an ELECTRA's generator."""
        return self.task == "pretraining" and not self.lacks_part("masked_lm")
