"""Converts the config.json of Hugging Face's transformers to our configurations and back.

Sources: the configuration classes and `ACT2FN` (activations.py) of transformers, version 5.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from albert_tf.config import PUBLISHED_KEYS as ALBERT_KEYS
from albert_tf.config import AlbertConfig
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_common.transformers_keys import is_of_transformers
from bert_tf.config import ANY, COMMON_KEYS, BertConfig, EncoderConfig
from electra_tf.config import GENERATOR_HEAD_SIZE, ElectraConfig
from model_formats.transformers_files import names

CONFIG_FILE = "config.json"

# transformers' hidden_act -> ours. Its "gelu" is the erf form; ours and Google's is the tanh form,
# which transformers has under several names that differ only in speed.
ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_python_tanh": "gelu",
    "gelu_fast": "gelu",
    "gelu_accurate": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}

# Ours -> transformers'.
ACTIVATIONS_BACK = {
    "gelu": "gelu_new",
    "gelu_tanh": "gelu_new",
    "gelu_erf": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}

_COMMON_DEFAULTS = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
}
# transformers' model_type -> the default values of keys that a file lacks.
DEFAULTS = {
    "bert": _COMMON_DEFAULTS,
    "albert": {
        **_COMMON_DEFAULTS,
        "embedding_size": 128,
        "hidden_size": 4096,
        "num_hidden_groups": 1,
        "num_attention_heads": 64,
        "intermediate_size": 16384,
        "inner_group_num": 1,
        "hidden_act": "gelu_new",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    "electra": {
        **_COMMON_DEFAULTS,
        "embedding_size": 128,
        "hidden_size": 256,
        "num_attention_heads": 4,
        "intermediate_size": 1024,
    },
    "roberta": {**_COMMON_DEFAULTS, "pad_token_id": 1},
}

# transformers' model_type -> ours (a key of `ENCODERS`), the class of configurations, the table of
# weights.
KINDS: dict[str, tuple[str, type[EncoderConfig], dict[str, str]]] = {
    "bert": ("bert", BertConfig, names.BERT_NAMES),
    "albert": ("albert", AlbertConfig, names.ALBERT_NAMES),
    "electra": ("electra", ElectraConfig, names.ELECTRA_NAMES),
    "roberta": ("bert", BertConfig, names.ROBERTA_NAMES),
}

# The only values of some keys that this project supports; other values mean different networks.
SUPPORTED_VALUES = {
    **{key: value for key, value in {**COMMON_KEYS, **ALBERT_KEYS}.items() if value is not ANY},
    "add_cross_attention": False,
    "is_decoder": False,
    "position_embedding_type": "absolute",
    "pruned_heads": {},
}


@dataclasses.dataclass(frozen=True)
class HuggingFaceModel:
    """Describes the weights that belong to a config.json."""

    kind: str  # transformers' model_type: "bert", "albert", "electra" or "roberta"
    model_type: str  # ours, a key of `model_formats.encoders.ENCODERS`
    config: EncoderConfig  # the configuration
    names: dict[str, str]  # its table of `model_formats.transformers_files.names`
    skipped_positions: int = 0  # the rows of the position table before the first position


def read_config(path: str, expected: str | None = None) -> HuggingFaceModel:
    """Reads a config.json; `expected` as in `from_huggingface`."""
    values = read_json(read_bytes(path), path)
    if not isinstance(values, dict) or not is_of_transformers(values):
        raise InputError(f"{path} must be a config.json of transformers. Received: another file")
    return from_huggingface(values, path, expected)


def from_huggingface(
    values: Mapping[str, Any], source: str, expected: str | None = None
) -> HuggingFaceModel:
    """Converts the values of a config.json; keys that do not change the network are ignored.

    Args:
        expected: the model_type of a file without model_type and architectures.

    Raises:
        InputError: the kind of model or a value is not supported, or a size is invalid.
    """
    kind = _kind_of(values) or expected
    if not isinstance(kind, str) or kind not in DEFAULTS:
        raise InputError(
            f"{source}: model_type must be one of {', '.join(DEFAULTS)}. Received: {kind!r}"
        )
    for key, wanted in SUPPORTED_VALUES.items():
        if values.get(key, wanted) not in (wanted, None):
            raise InputError(
                f"{source}: {key} must be {wanted!r}, as another value means another model. "
                f"Received: {values[key]!r}"
            )
    if "vocab_size" not in values:
        raise InputError(
            f"{source}: vocab_size, the rows of the embedding table, must be given. "
            f"Received: {', '.join(values)}"
        )
    filled = {**DEFAULTS[kind], **values}
    act = filled["hidden_act"]
    if not isinstance(act, str) or act not in ACTIVATIONS:
        raise InputError(
            f"{source}: hidden_act must be one of {', '.join(ACTIVATIONS)}. Received: {act!r}"
        )
    try:
        model_type, cls, table = KINDS[kind]
        config, skipped = _fields(cls, {**filled, "hidden_act": ACTIVATIONS[act]}), 0
        if kind == "roberta":
            config, skipped = _after_padding(config, filled["pad_token_id"])
        return HuggingFaceModel(kind, model_type, config, table, skipped)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _kind_of(values):
    """Returns transformers' model_type, or None if neither it nor an architecture is given."""
    if "model_type" in values:
        return values["model_type"]
    architectures = values.get("architectures")
    if isinstance(architectures, list) and architectures:
        name = str(architectures[0]).lower()  # such as "BertForMaskedLM" in files of 2019
        return next((kind for kind in DEFAULTS if name.startswith(kind)), name)
    return None


def _fields(cls, values):
    """Builds a `cls` from the values of its fields; one token type stands for both segments."""
    if values["type_vocab_size"] == 1:
        values = {**values, "type_vocab_size": 2}
    known = {field.name for field in dataclasses.fields(cls)} & values.keys()
    known.discard("generator_size")  # config.json does not describe the generator
    sizes = {name: values[name] for name in known}
    try:
        return cls(**sizes)
    except InputError:
        width = sizes["hidden_size"]
        if cls is not ElectraConfig or type(width) is not int or width < GENERATOR_HEAD_SIZE:
            raise
        # The default share may give a width that the generator's heads do not divide.
        return cls(**sizes, generator_size=GENERATOR_HEAD_SIZE / width)


def _after_padding(config, pad):
    """Returns a RoBERTa's configuration, and the number of table rows before its first position."""
    if type(pad) is not int or not 0 <= pad < config.max_position_embeddings - 1:
        raise InputError(
            "pad_token_id must be an integer from 0, below max_position_embeddings - 1. "
            f"Received: {pad!r}"
        )
    positions = config.max_position_embeddings - (pad + 1)
    return dataclasses.replace(config, max_position_embeddings=positions), pad + 1


def to_huggingface(config: EncoderConfig, model_type: str) -> dict[str, Any]:
    """Returns a config.json's contents, including model_type, for one of our configurations."""
    activation = ACTIVATIONS_BACK[(config.hidden_act or "linear").lower()]
    sizes = dataclasses.asdict(config)
    sizes.pop("generator_size", None)  # the generator has a folder of its own
    # Here a segment whose type has no row adds nothing; in transformers it is an error.
    sizes["type_vocab_size"] = max(2, config.type_vocab_size)
    return {"model_type": model_type, **sizes, "hidden_act": activation}
