"""Declares the configuration of both ELECTRA networks, as in electra_config.json."""

import dataclasses
from typing import Self

from bert_common.errors import InputError
from bert_tf.block_costs import TransformerBlockCosts
from bert_tf.config import LAYER_NORM_EPSILON, EncoderConfig

# From arXiv:2003.10555, table 6, and google-research/electra, util/training_utils.py. The columns
# are `bert_tf.config.PRESET_SIZES`.
PRESETS = {
    "small": (12, 256, 4, 1024),
    "base": (12, 768, 12, 3072),
    "large": (24, 1024, 16, 4096),
}
PRESET_WIDTHS = {
    "small": {"embedding_size": 128, "generator_size": 0.25},
    "base": {"embedding_size": 768, "generator_size": 1 / 3},
    "large": {"embedding_size": 1024, "generator_size": 0.25},
}

# The width of the generator's attention heads, and the ratio of its intermediate size to its hidden
# size, from google-research/electra, run_pretraining.py get_generator_config.
GENERATOR_HEAD_SIZE, GENERATOR_INTERMEDIATE = 64, 4


@dataclasses.dataclass(frozen=True)
class ElectraConfig(EncoderConfig):
    """Holds an ELECTRA's sizes, rates and activation; defaults as google-research/electra's small.

    The "gelu" in google-research/electra uses the error function, which is called gelu_erf here.

    Raises:
        InputError: a value is out of range, or sizes contradict each other.
    """

    vocab_size: int
    embedding_size: int = 128
    hidden_size: int = 256
    num_hidden_layers: int = 12
    num_attention_heads: int = 4
    intermediate_size: int = 1024
    hidden_act: str | None = "gelu_erf"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = LAYER_NORM_EPSILON
    # The generator's width as a fraction of hidden_size.
    generator_size: float = 0.25

    block, has_pooler = TransformerBlockCosts, False
    presets = PRESETS
    preset_changes = PRESET_WIDTHS

    def __post_init__(self) -> None:
        super().__post_init__()
        width, heads = self._generator_width, self._generator_heads
        if not 0 < self.generator_size <= 1 or width < 1 or width % heads:
            raise InputError(
                "generator_size must be at most 1 and give a width that the generator's heads, "
                f"one for each {GENERATOR_HEAD_SIZE}, divide. Received: "
                f"generator_size={self.generator_size}, hidden_size={self.hidden_size}"
            )

    @property
    def _generator_width(self) -> int:
        return round(self.hidden_size * self.generator_size)

    @property
    def _generator_heads(self) -> int:
        return max(1, self._generator_width // GENERATOR_HEAD_SIZE)

    @property
    def generator(self) -> Self:
        """The generator's configuration, as deep as the discriminator but narrower."""
        width = self._generator_width
        return dataclasses.replace(
            self,
            hidden_size=width,
            num_attention_heads=self._generator_heads,
            intermediate_size=GENERATOR_INTERMEDIATE * width,
            generator_size=1.0,
        )
