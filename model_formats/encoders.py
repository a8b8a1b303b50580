"""The encoders: one record for each, where all that differs between them is looked up."""

import dataclasses
import importlib

from albert_tf.config import AlbertConfig
from bert_tf.config import BertConfig
from model_formats.transformers_files.names import ALBERT_NAMES, BERT_NAMES


@dataclasses.dataclass(frozen=True)
class Encoder:
    """What the project knows of a kind of encoder.

    Attributes:
        name: as flags have it, and as `LoadedModel.model_type`.
        title: as sentences have it.
        config: the class of its configurations.
        model: "module.Class", as the class's module imports Keras and this one must not.
        config_file: the name of the file with its configuration, which tells a folder's kind.
        checkpoint: the name of its checkpoint in Google's released folders.
        tokenizers: the kinds of tokenizers that Google's code for it has.
        objective: the sentence objective that records for it are made for, if no flag says.
        prefix: how the names of its classes in transformers begin.
        names: its table of weights in transformers; see `transformers_files.names`.
    """

    name: str
    title: str
    config: type
    model: str
    config_file: str
    checkpoint: str
    tokenizers: tuple
    objective: str
    prefix: str
    names: dict

    @property
    def model_class(self):
        """The encoder's class, a `keras.Model`."""
        module, _, name = self.model.rpartition(".")
        return getattr(importlib.import_module(module), name)


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
)
ENCODERS = {encoder.name: encoder for encoder in (BERT, ALBERT)}
