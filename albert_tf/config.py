"""The sizes of an ALBERT model, as google-research/albert writes them in albert_config.json."""

import dataclasses
import os
from typing import Any, Self

from bert_common.errors import InputError
from bert_tf.block_costs import TransformerBlockCosts
from bert_tf.config import (
    COMMON_KEYS,
    LAYER_NORM_EPSILON,
    check_sizes,
    config_from_dict,
    config_from_json_file,
    config_from_preset,
    config_to_dict,
)

# Keys that published files hold beyond the fields, with the value that means this model: Google's
# released code reads none of them.
PUBLISHED_KEYS = {
    **COMMON_KEYS,
    "down_scale_factor": 1,
    "gap_size": 0,
    "layers_to_keep": [],
    "ln_type": "postln",
    "net_structure_type": 0,
    "num_memory_blocks": 0,
}

# arXiv:1909.11942, table 1, and the version 2 files of google-research/albert, which train without
# dropout; the columns are `bert_tf.config.PRESET_SIZES`.
PRESETS = {
    "base": (12, 768, 12, 3072),
    "large": (24, 1024, 16, 4096),
    "xlarge": (24, 2048, 16, 8192),
    "xxlarge": (12, 4096, 64, 16384),
}


@dataclasses.dataclass(frozen=True)
class AlbertConfig:
    """Sizes, rates and the activation of an ALBERT model; defaults as google-research/albert.

    Raises:
        InputError: a value out of its range, or sizes that contradict each other.
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
    # What a block of such a model costs; the block's own class imports Keras.
    block = TransformerBlockCosts
    has_pooler = True

    def __post_init__(self) -> None:
        check_sizes(self)
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
        """The number of blocks that run one after the other."""
        return self.num_hidden_layers * self.inner_group_num

    def to_dict(self) -> dict[str, Any]:
        """Returns the contents of an albert_config.json, in Google's keys where possible."""
        return config_to_dict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any], source: str = "the configuration") -> Self:
        """Makes a configuration from what `source` holds; an unknown key is an InputError."""
        return config_from_dict(cls, values, PUBLISHED_KEYS, source)

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> Self:
        """Reads albert_config.json; every problem is an InputError that names the file."""
        return config_from_json_file(cls, path, PUBLISHED_KEYS)

    @classmethod
    def from_preset(cls, name: str, vocab_size: int, **changes: Any) -> Self:
        """Makes one of the published sizes: base, large, xlarge, xxlarge."""
        return config_from_preset(cls, PRESETS, name, vocab_size=vocab_size, **changes)
