"""The sizes of a BERT model, as google-research/bert writes them in bert_config.json."""

import dataclasses
import sys

from tokenization.errors import InputError
from tokenization.json_text import parse_json

# Keys of published configuration files that no code has ever read (the multilingual and
# Chinese models describe a pooler that does not exist).
LEGACY_KEYS = frozenset(
    {
        "directionality",
        "pooler_fc_size",
        "pooler_num_attention_heads",
        "pooler_num_fc_layers",
        "pooler_size_per_head",
        "pooler_type",
    }
)

# What an int32 holds: no size of a model comes near it.
LARGEST_SIZE = 2**31 - 1

ACTIVATION_NAMES = ("linear", "relu", "gelu", "tanh")  # as bert/modeling.py get_activation

# layers, hidden size, heads (google-research/bert README; the small ones are of
# "Well-Read Students Learn Better", arXiv:1908.08962, table 2). Intermediate is 4 x hidden.
PRESETS = {
    "tiny": (2, 128, 2),
    "mini": (4, 256, 4),
    "small": (4, 512, 8),
    "medium": (8, 512, 8),
    "base": (12, 768, 12),
    "large": (24, 1024, 16),
}


@dataclasses.dataclass(frozen=True)
class BertConfig:
    """Sizes, rates and the activation of a BERT model; defaults as google-research/bert.

    Raises:
        InputError: a value out of its range, or sizes that contradict each other.
    """

    vocab_size: int
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str | None = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 16
    initializer_range: float = 0.02

    def __post_init__(self):
        check_sizes(self)

    @property
    def embedding_size(self):
        """The width of the embedding tables: BERT's is the hidden size."""
        return self.hidden_size

    @classmethod
    def from_dict(cls, values):
        """Makes a configuration from a dict; an unknown key is an InputError."""
        return config_from_dict(cls, values, LEGACY_KEYS, source="the configuration")

    @classmethod
    def from_json_file(cls, path):
        """Reads bert_config.json; every problem is an InputError that names the file."""
        return config_from_json_file(cls, path, LEGACY_KEYS)

    @classmethod
    def from_preset(cls, name, vocab_size, **changes):
        """One of the published sizes: tiny, mini, small, medium, base, large."""
        if name not in PRESETS:
            raise InputError(f"The preset must be one of {', '.join(PRESETS)}. Received: {name!r}")
        layers, hidden, heads = PRESETS[name]
        sizes = {
            "hidden_size": hidden,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "intermediate_size": 4 * hidden,
            "type_vocab_size": 2,
        }
        return cls(vocab_size=vocab_size, **{**sizes, **changes})


def config_from_json_file(cls, path, legacy_keys):
    """Reads a configuration file into `cls`.

    Raises:
        InputError: the file cannot be read, is not a JSON object, or does not fit `cls`.
    """
    try:
        with open(path, encoding="utf-8") as file:
            values = parse_json(file.read())
    except OSError as error:
        raise InputError(f"cannot read the configuration {path}: {error.strerror}") from None
    except ValueError as error:  # JSON and UTF-8 errors
        raise InputError(f"{path} must be a JSON file. Received: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path} must hold a JSON object. Received: {type(values).__name__}")
    return config_from_dict(cls, values, legacy_keys, source=path)


def config_from_dict(cls, values, legacy_keys, source):
    """Makes a `cls` of a dict, refusing what it does not know.

    Raises:
        InputError: an unknown key, no vocab_size, or values that `cls` refuses.
    """
    known = {field.name for field in dataclasses.fields(cls)}
    unknown = sorted(set(values) - known - legacy_keys)
    if unknown:
        raise InputError(
            f"{source}: every key must be one of {cls.__name__}'s. Received: {', '.join(unknown)}"
        )
    if "vocab_size" not in values:
        raise InputError(f"{source}: vocab_size must be given. Received: {', '.join(values)}")
    try:
        return cls(**{key: value for key, value in values.items() if key in known})
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def check_sizes(config):
    """Checks what BERT's and ALBERT's configurations have in common.

    Raises:
        InputError: a value out of its range, or sizes that contradict each other.
    """
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.type is int and (not isinstance(value, int) or value is True or value < 1):
            raise InputError(f"{field.name} must be a positive integer. Received: {value!r}")
        if field.type is int and value > LARGEST_SIZE:
            raise InputError(f"{field.name} must be at most {LARGEST_SIZE}. Received: {value}")
        # Not math.isfinite, which an integer of 400 digits is too large for.
        if field.type is float and (
            type(value) not in (int, float) or not abs(value) <= sys.float_info.max
        ):
            raise InputError(f"{field.name} must be a finite number. Received: {value!r}")
    for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
        if not 0 <= getattr(config, name) < 1:
            raise InputError(f"{name} must be in [0, 1). Received: {getattr(config, name)!r}")
    if config.initializer_range < 0:
        raise InputError(
            f"initializer_range must not be negative. Received: {config.initializer_range!r}"
        )
    if config.hidden_size % config.num_attention_heads:
        raise InputError(
            "hidden_size must be a multiple of num_attention_heads. Received: "
            f"hidden_size={config.hidden_size}, num_attention_heads={config.num_attention_heads}"
        )
    # Empty means none, and case does not count: as bert/modeling.py get_activation.
    act = config.hidden_act
    if act not in (None, "") and str(act).lower() not in ACTIVATION_NAMES:
        raise InputError(
            f"hidden_act must be one of {', '.join(ACTIVATION_NAMES)}. "
            f"Received: {config.hidden_act!r}"
        )
