"""Declares the ALBERT configuration, as in google-research/albert's albert_config.json."""

import dataclasses

from bert_common.errors import InputError
from bert_tf.block_costs import TransformerBlockCosts
from bert_tf.config import COMMON_KEYS, LAYER_NORM_EPSILON, EncoderConfig

# Further keys in published files, with the only values that describe this model. Google's released
# code reads none of them.
PUBLISHED_KEYS = {
    **COMMON_KEYS,
    "down_scale_factor": 1,
    "gap_size": 0,
    "layers_to_keep": [],
    "ln_type": "postln",
    "net_structure_type": 0,
    "num_memory_blocks": 0,
}

# From arXiv:1909.11942, table 1, and the version 2 files of google-research/albert, which train
# without dropout; the columns are `bert_tf.config.PRESET_SIZES`.
PRESETS = {
    "base": (12, 768, 12, 3072),
    "large": (24, 1024, 16, 4096),
    "xlarge": (24, 2048, 16, 8192),
    "xxlarge": (12, 4096, 64, 16384),
}


@dataclasses.dataclass(frozen=True)
class AlbertConfig(EncoderConfig):
    """Holds the sizes, rates and activation of an ALBERT; defaults as in google-research/albert.

    Raises:
        InputError: a value is out of range, or sizes contradict each other.
    """

    vocab_size: int
    embedding_size: int = 128
    hidden_size: int = 4096
    num_hidden_layers: int = 12
    num_hidden_groups: int = 1
    num_attention_heads: int = 64
    intermediate_size: int = 16384
    inner_group_num: int = 1
    hidden_act: str | None = "gelu"
    hidden_dropout_prob: float = 0.0
    attention_probs_dropout_prob: float = 0.0
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = LAYER_NORM_EPSILON

    block, has_pooler = TransformerBlockCosts, True
    published_keys = PUBLISHED_KEYS
    presets = PRESETS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_hidden_groups > self.num_hidden_layers:
            raise InputError(
                "num_hidden_groups must not be larger than num_hidden_layers. Received: "
                f"num_hidden_groups={self.num_hidden_groups}, "
                f"num_hidden_layers={self.num_hidden_layers}"
            )

    @property
    def num_blocks(self) -> int:
        """The number of blocks with their own weights, which layers share."""
        return self.num_hidden_groups * self.inner_group_num

    @property
    def num_block_calls(self) -> int:
        """The number of blocks that run one after another."""
        return self.num_hidden_layers * self.inner_group_num
