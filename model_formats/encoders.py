"""Defines one record per kind of encoder with everything in which the encoders differ."""

import dataclasses
import importlib
import math
import os
from typing import TYPE_CHECKING, Any

from albert_tf.config import AlbertConfig
from bert_tf.checkpoint_files import GOOGLE_BEST
from bert_tf.config import BertConfig, EncoderConfig
from electra_tf.config import ElectraConfig
from model_formats.transformers_files.names import ALBERT_NAMES, BERT_NAMES, ELECTRA_NAMES

if TYPE_CHECKING:
    import keras


def load_class(path: str) -> Any:
    """Imports the class with the path "module.Class"."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@dataclasses.dataclass(frozen=True)
class Encoder:
    """The properties of a kind of encoder."""

    name: str  # as written in flags, and as `LoadedModel.model_type`
    title: str  # as written in prose
    config: type[EncoderConfig]  # the class of its configurations
    model: str  # "module.Class", as the class's module imports Keras and this one must not
    config_file: str  # the name of its configuration file, by which a folder's kind is recognized
    checkpoint: str  # the name of its checkpoint in Google's released folders
    tokenizers: tuple[str, ...]  # the kinds of tokenizers in Google's code for it
    objective: str  # the default sentence objective of its records
    prefix: str  # the prefix of its class names in transformers
    names: dict[str, str]  # its table of weights in transformers; see `transformers_files.names`
    # The encoder whose flag defaults apply if this one has none of its own, a key of `ENCODERS`:
    # "bert" or "albert", for which Google's programs have defaults.
    defaults: str
    # Whether its records have the feature "token_boundary", which Google's training program reads.
    token_boundary: bool = False
    # Whether Google's code for it answers SQuAD 2.0 with a beam-search head.
    beams: bool = False
    # A key of transformers' config.json -> the attribute of the tokenizer.
    special_ids: dict[str, str] = dataclasses.field(
        default_factory=lambda: {"pad_token_id": "pad_id"}
    )
    # The flag for its configuration in Google's programs, if they have one.
    config_flag: str | None = None
    google_use: str = ""  # a note on Google's programs for the export, if they have no such flag
    # Our names of the function that Google's code for it calls gelu.
    google_gelu: tuple[str, ...] = ("gelu", "gelu_tanh")
    # The only hidden_act that its masked-word head supports in transformers; None for any.
    head_act: str | None = None
    # Whether its sequence head in transformers has two layers instead of our one.
    two_layers: bool = False
    # The suffix of a class name in transformers -> keys of config.json without which that class
    # has different layers.
    class_keys: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Whether its class in transformers projects the embeddings even if they are as wide as the
    # hidden states.
    always_projects: bool = False

    @property
    def model_class(self) -> "type[keras.Model]":
        """The encoder's class, a `keras.Model`."""
        return load_class(self.model)

    @property
    def stem(self) -> str:
        """The common prefix of Google's names of its weights, for example "bert/"."""
        common = os.path.commonprefix([*self.model_class.google_names.values()])
        return common[: common.rindex("/") + 1]

    def make_model(self, config: EncoderConfig, **options: Any) -> "keras.Model":
        """Builds a new encoder; `options` are further arguments of its class.

        Raises a TypeError if the configuration miscounts the encoder's weights, because memory
        and speed are estimated from that count.
        """
        encoder, counted = self.model_class(config, **options), sum(config.count_parts().values())
        weights = sum(math.prod(weight.shape) for weight in encoder.trainable_variables)
        if weights != counted:
            raise TypeError(
                f"{type(config).__name__} must count the weights of {self.model} (count_parts, "
                f"block). Received: {counted:,} for {weights:,}"
            )
        return encoder


BERT = Encoder(
    name="bert",
    title="BERT",
    config=BertConfig,
    model="bert_tf.model.BertModel",
    config_file="bert_config.json",
    checkpoint="bert_model.ckpt",
    tokenizers=("full",),
    objective="nsp",
    prefix="Bert",
    names=BERT_NAMES,
    defaults="bert",
    config_flag="bert_config_file",
)
ALBERT = Encoder(
    name="albert",
    title="ALBERT",
    config=AlbertConfig,
    model="albert_tf.model.AlbertModel",
    config_file="albert_config.json",
    checkpoint=GOOGLE_BEST,
    tokenizers=("full", "sentencepiece"),
    objective="sop",
    prefix="Albert",
    names=ALBERT_NAMES,
    defaults="albert",
    config_flag="albert_config_file",
    token_boundary=True,
    beams=True,
    special_ids={  # transformers' own defaults are the released models' ids
        "pad_token_id": "pad_id",
        "bos_token_id": "cls_id",
        "eos_token_id": "sep_id",
    },
    always_projects=True,
)
ELECTRA = Encoder(
    name="electra",
    title="ELECTRA",
    config=ElectraConfig,
    model="electra_tf.model.ElectraModel",
    config_file="electra_config.json",
    checkpoint="electra_model.ckpt",
    tokenizers=("full",),
    objective="none",
    prefix="Electra",
    names=ELECTRA_NAMES,
    defaults="bert",
    google_use=", whose programs take the sizes by --hparams",
    google_gelu=("gelu_erf",),
    head_act="gelu_erf",
    two_layers=True,
    class_keys={
        "ForMultipleChoice": {
            "summary_type": "first",
            "summary_use_proj": False,
            "summary_activation": "",
        }
    },
)
ENCODERS = {encoder.name: encoder for encoder in (BERT, ALBERT, ELECTRA)}
