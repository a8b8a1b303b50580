"""Recognizes a config.json of Hugging Face's transformers by its keys."""

from collections.abc import Mapping
from typing import Any

# Keys that transformers write into a config.json, where "gelu" names the erf form; Google's files
# and this project's have none of them.
TRANSFORMERS_KEYS = (
    "_name_or_path", "add_cross_attention", "architectures", "bos_token_id", "classifier_dropout",
    "classifier_dropout_prob", "dtype", "eos_token_id", "gradient_checkpointing", "is_decoder",
    "model_type", "output_attentions", "output_hidden_states", "output_past", "pad_token_id",
    "position_embedding_type", "torch_dtype", "transformers_version", "use_cache",
)  # fmt: skip


def is_of_transformers(values: Mapping[str, Any]) -> bool:
    """Returns True if the contents of a configuration file were written by transformers."""
    return any(key in values for key in TRANSFORMERS_KEYS)
