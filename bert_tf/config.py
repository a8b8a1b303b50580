"""The sizes of a BERT model, as google-research/bert writes them in bert_config.json."""

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from bert_common.errors import InputError
from bert_common.json_text import parse_json
from bert_common.transformers_keys import TRANSFORMERS_KEYS, is_of_transformers
from bert_tf.block_costs import TransformerBlockCosts

# Keys of published configuration files that are not fields here -> the only value that this model
# supports, or ANY for a key that no code ever read. No pooler matches the pooler's keys.
ANY = object()
COMMON_KEYS = {
    # Used by Google's multilingual and Chinese models, and by Chinese ALBERTs derived from them.
    "directionality": "bidi",
    "pooler_fc_size": ANY,
    "pooler_num_attention_heads": ANY,
    "pooler_num_fc_layers": ANY,
    "pooler_size_per_head": ANY,
    "pooler_type": "first_token_transform",
}

# The largest int32, which no size of a real model comes near.
LARGEST_SIZE = 2**31 - 1
# The depth of the deepest published transformer (arXiv:2203.00555); a larger number is a mistake
# and would take hours to build.
MOST_LAYERS = 1000

# As in get_activation of bert/modeling.py, whose "gelu" is the tanh form. "gelu_tanh" is the same,
# and "gelu_erf" is the form with the error function.
ACTIVATION_NAMES = ("linear", "relu", "gelu", "gelu_tanh", "gelu_erf", "tanh")

# Added to the variance in a layer norm, from tf.contrib.layers.layer_norm, which
# google-research/bert calls. Some models of transformers use a different value.
LAYER_NORM_EPSILON = 1e-12

# The columns of a table of published sizes.
PRESET_SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")

# From google-research/bert's README; the small sizes are from "Well-Read Students Learn Better",
# arXiv:1908.08962, table 2.
PRESETS = {
    "tiny": (2, 128, 2, 512),
    "mini": (4, 256, 4, 1024),
    "small": (4, 512, 8, 2048),
    "medium": (8, 512, 8, 2048),
    "base": (12, 768, 12, 3072),
    "large": (24, 1024, 16, 4096),
}


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """The base class of all encoders' configurations, which declare the fields themselves.

    Attributes:
        published_keys: keys of published files that are not fields -> the required value, or `ANY`.
        presets: name of a published size -> its `PRESET_SIZES`.
        preset_changes: name of a published size -> other fields that differ from the defaults.
        block: the costs of a block, in a separate class because the block's own imports Keras.
            Every subclass must state it, as its block may have different costs.
        has_pooler: whether a layer on top of [CLS] represents the whole text.
    """

    if TYPE_CHECKING:  # each subclass has its own defaults, and its own order
        vocab_size: int
        hidden_size: int
        num_hidden_layers: int
        num_attention_heads: int
        intermediate_size: int
        hidden_act: str | None
        hidden_dropout_prob: float
        attention_probs_dropout_prob: float
        max_position_embeddings: int
        type_vocab_size: int
        initializer_range: float
        layer_norm_eps: float
        block: ClassVar[type[TransformerBlockCosts]]
        has_pooler: ClassVar[bool]

    published_keys: ClassVar[Mapping[str, Any]] = COMMON_KEYS
    presets: ClassVar[Mapping[str, tuple[int, ...]]] = {}
    preset_changes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __init_subclass__(cls) -> None:
        if "block" not in vars(cls):
            raise TypeError(f"{cls.__name__} must state what its blocks cost, as `block`")

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            name, value = field.name, getattr(self, field.name)
            if field.type is int:
                if not isinstance(value, int) or value is True or value < 1:
                    raise InputError(f"{name} must be a positive integer. Received: {value!r}")
                most = MOST_LAYERS if name == "num_hidden_layers" else LARGEST_SIZE
                if value > most:
                    raise InputError(f"{name} must be at most {most}. Received: {value}")
            is_finite = type(value) in (int, float) and math.isfinite(value)
            if field.type is float and not is_finite:
                raise InputError(f"{name} must be a finite number. Received: {value!r}")
        for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} must be in [0, 1). Received: {getattr(self, name)!r}")
        if self.layer_norm_eps <= 0:
            raise InputError(f"layer_norm_eps must be above 0. Received: {self.layer_norm_eps!r}")
        if self.initializer_range < 0:
            raise InputError(
                f"initializer_range must not be negative. Received: {self.initializer_range!r}"
            )
        if self.hidden_size % self.num_attention_heads:
            raise InputError(
                "hidden_size must be a multiple of num_attention_heads. Received: "
                f"hidden_size={self.hidden_size}, num_attention_heads={self.num_attention_heads}"
            )
        # As in get_activation of bert/modeling.py, an empty name means none and case is ignored.
        act = self.hidden_act
        if act not in (None, "") and str(act).lower() not in ACTIVATION_NAMES:
            raise InputError(
                f"hidden_act must be one of {', '.join(ACTIVATION_NAMES)}. "
                f"Received: {self.hidden_act!r}"
            )

    @property
    def embedding_size(self) -> int:
        """The width of the embedding tables: the hidden size, unless a subclass has a field."""
        return self.hidden_size

    @property
    def num_blocks(self) -> int:
        """The number of blocks with their own weights: one per layer."""
        return self.num_hidden_layers

    @property
    def num_block_calls(self) -> int:
        """The number of blocks that run in sequence."""
        return self.num_hidden_layers

    def count_parts(self) -> dict[str, int]:
        """Counts the encoder's weights by part."""
        # Subclasses with different weights override this. "positions" includes token types and
        # layer norm, "projection" widens narrow embeddings, "blocks" counts shared weights once.
        h, e = self.hidden_size, self.embedding_size
        return {
            "words": self.vocab_size * e,
            "positions": (self.type_vocab_size + self.max_position_embeddings) * e + 2 * e,
            "projection": 0 if e == h else e * h + h,
            "blocks": self.num_blocks * self.block.count_weights(self),
            "pooler": (h * h + h) * self.has_pooler,
        }

    def to_dict(self) -> dict[str, Any]:
        """Returns the contents of the configuration's file, with Google's keys where possible.

        layer_norm_eps is omitted if it is Google's value, because other tools reject unknown keys.
        """
        values = dataclasses.asdict(self)
        if values["layer_norm_eps"] == LAYER_NORM_EPSILON:
            del values["layer_norm_eps"]
        return values

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], source: str | os.PathLike[str] = "the configuration"
    ) -> Self:
        """Creates a configuration from the values of the file `source`.

        Raises:
            InputError: unknown keys, no vocab_size, values that are out of range or describe a
                different model, or a config.json of transformers.
        """
        if is_of_transformers(values):
            raise InputError(
                f"{source}: {cls.__name__} reads Google's files, in which hidden_act names other "
                "functions; korean_bert.load_model reads folders of transformers. Received: "
                f"a file with {next(key for key in TRANSFORMERS_KEYS if key in values)}"
            )
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(values) - known - set(cls.published_keys))
        if unknown:
            raise InputError(
                f"{source}: every key must be one of {cls.__name__}'s. "
                f"Received: {', '.join(unknown)}"
            )
        for key, wanted in cls.published_keys.items():
            if wanted is not ANY and values.get(key, wanted) != wanted:
                raise InputError(
                    f"{source}: {key} must be {wanted!r}, as another value means another model. "
                    f"Received: {values[key]!r}"
                )
        if "vocab_size" not in values:
            raise InputError(f"{source}: vocab_size must be given. Received: {', '.join(values)}")
        try:
            return cls(**{key: value for key, value in values.items() if key in known})
        except InputError as error:
            raise InputError(f"{source}: {error}") from None

    @classmethod
    def from_json_file(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a configuration file; any problem raises an InputError that names the file."""
        try:
            with open(path, encoding="utf-8") as file:
                values = parse_json(file.read())
        except OSError as error:
            raise InputError(f"cannot read the configuration {path}: {error.strerror}") from None
        except ValueError as error:  # JSON and UTF-8 errors
            raise InputError(f"{path} must be a JSON file. Received: {error}") from None
        if not isinstance(values, dict):
            raise InputError(f"{path} must hold a JSON object. Received: {type(values).__name__}")
        return cls.from_dict(values, path)

    @classmethod
    def from_preset(cls, name: str, vocab_size: int, **changes: Any) -> Self:
        """Creates a published size, a key of `presets`, with some fields changed."""
        if name not in cls.presets:
            names = ", ".join(cls.presets)
            raise InputError(f"The preset must be one of {names}. Received: {name!r}")
        sizes: dict[str, Any] = dict(zip(PRESET_SIZES, cls.presets[name], strict=True))
        return cls(
            **{"vocab_size": vocab_size, **sizes, **cls.preset_changes.get(name, {}), **changes}
        )


@dataclasses.dataclass(frozen=True)
class BertConfig(EncoderConfig):
    """The configuration of a BERT model, with the defaults of google-research/bert.

    Raises:
        InputError: a value is out of range, or sizes contradict each other.
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
    layer_norm_eps: float = LAYER_NORM_EPSILON

    block, has_pooler = TransformerBlockCosts, True
    presets = PRESETS
    preset_changes = dict.fromkeys(PRESETS, {"type_vocab_size": 2})


# Fields that change the outputs but not the shapes of the weights (ALBERT's layers share theirs).
UNSEEN_FIELDS = ("hidden_act", "layer_norm_eps", "num_attention_heads", "num_hidden_layers")


def unseen_differences(one: EncoderConfig, other: EncoderConfig) -> list[str]:
    """Returns the `UNSEEN_FIELDS` in which two configurations differ; "gelu_tanh" equals "gelu"."""

    def of(config):
        act = (config.hidden_act or "linear").lower()
        return {**vars(config), "hidden_act": "gelu" if act == "gelu_tanh" else act}

    return [name for name in UNSEEN_FIELDS if of(one)[name] != of(other)[name]]
