"""The encoders: one record for each, where all that differs between them is looked up."""

import dataclasses
import importlib
import math
import os
from typing import TYPE_CHECKING, Any

from albert_tf.config import AlbertConfig
from bert_tf.config import BertConfig, EncoderConfig
from electra_tf.config import ElectraConfig
from model_formats.transformers_files.names import ALBERT_NAMES, BERT_NAMES, ELECTRA_NAMES

if TYPE_CHECKING:
    import keras


def load_class(path: str) -> Any:
    """Imports the class that "module.Class" names."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@dataclasses.dataclass(frozen=True)
class Encoder:
    """What the project knows of a kind of encoder."""

    name: str  # as written in flags, and as `LoadedModel.model_type`
    title: str  # as written in prose
    config: type[EncoderConfig]  # the class of its configurations
    model: str  # "module.Class", as the class's module imports Keras and this one must not
    config_file: str  # the name of the file with its configuration, which tells a folder's kind
    checkpoint: str  # the name of its checkpoint in Google's released folders
    tokenizers: tuple[str, ...]  # the kinds of tokenizers that Google's code for it has
    objective: str  # the sentence objective that records for it are made for, if no flag says
    prefix: str  # how the names of its classes in transformers begin
    names: dict[str, str]  # its table of weights in transformers; see `transformers_files.names`
    # The encoder whose flag defaults apply where this one has none of its own, a key of `ENCODERS`:
    # "bert" or "albert", for which Google's programs have defaults.
    defaults: str
    # Whether records for it have that feature, which Google's training program for it reads.
    token_boundary: bool = False
    # Whether Google's code for it answers SQuAD 2.0 with a head that searches with beams.
    beams: bool = False
    # A key of transformers' config.json -> the attribute of the tokenizer.
    special_ids: dict[str, str] = dataclasses.field(
        default_factory=lambda: {"pad_token_id": "pad_id"}
    )
    # The flag for its configuration in Google's programs, if they have one.
    config_flag: str | None = None
    google_use: str = ""  # what an export says of Google's programs where they have no such flag
    # What Google's code for it calls gelu, by its names here.
    google_gelu: tuple[str, ...] = ("gelu", "gelu_tanh")
    # The only hidden_act that its head for masked words has in transformers; None: any.
    head_act: str | None = None
    # Whether its sequence head in transformers has two layers where ours has one.
    two_layers: bool = False
    # The end of the name of a class in transformers -> the keys of config.json without which that
    # class has other layers.
    class_keys: dict[str, Any] = dataclasses.field(default_factory=dict)
    # Whether its class in transformers has a projection of the embeddings where they are as wide as
    # the hidden states, too.
    always_projects: bool = False

    @property
    def model_class(self) -> "type[keras.Model]":
        """The encoder's class, a `keras.Model`."""
        return load_class(self.model)

    @property
    def stem(self) -> str:
        """How Google's names of its weights begin, for example "bert/"."""
        common = os.path.commonprefix([*self.model_class.google_names.values()])
        return common[: common.rindex("/") + 1]

    def make_model(self, config: EncoderConfig, **options: Any) -> "keras.Model":
        """A new encoder, with further arguments of its class.

        One with other weights than its configuration counts, from which memory and speed are
        estimated, is a TypeError.
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
    checkpoint="model.ckpt-best",
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
