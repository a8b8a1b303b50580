"""Reads a model's configuration file, whichever project wrote it."""

import dataclasses
import functools
import os
from typing import Any

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_common.transformers_keys import is_of_transformers
from bert_tf.config import EncoderConfig
from model_formats.encoders import ENCODERS, Encoder
from model_formats.transformers_files.config import HuggingFaceModel, from_huggingface


@dataclasses.dataclass(frozen=True)
class ConfigFile:
    """A bert_config.json, an albert_config.json, or a config.json of transformers, read once.

    The file is recognized by its keys, as hidden_act means different things in ours and theirs.
    """

    path: str
    # The model type that its folder or flag implies, a key of `ENCODERS`; None to take the file's.
    expected: str | None = None

    @functools.cached_property
    def values(self) -> Any:
        """The file's content, or None if it is not valid JSON."""
        try:
            return read_json(read_bytes(self.path), self.path)
        except InputError:
            return None

    @property
    def is_of_transformers(self) -> bool:
        """Whether transformers wrote the file."""
        return isinstance(self.values, dict) and is_of_transformers(self.values)

    @functools.cached_property
    def transformers_model(self) -> HuggingFaceModel:
        """The `HuggingFaceModel` of a transformers file; raises what `from_huggingface` does."""
        return from_huggingface(self.values, self.path, self.expected)

    @property
    def model_type(self) -> str:
        """The model type, a key of `ENCODERS`."""
        if self.expected:
            return self.expected
        return self.transformers_model.model_type if self.is_of_transformers else self._nearest()

    def _nearest(self):
        """Returns the encoder with the fewest unknown keys; the file's name breaks ties."""
        name = os.path.basename(self.path)
        keys = set(self.values) if isinstance(self.values, dict) else set()

        def distance(encoder):
            known = {field.name for field in dataclasses.fields(encoder.config)}
            return len(keys - known), not name.startswith(encoder.name)

        return min(ENCODERS.values(), key=distance).name

    @functools.cached_property
    def config(self) -> EncoderConfig:
        """The model's configuration; raises an `InputError` for a file of a different model."""
        return self.config_with()

    def config_with(self, vocab_size: int | None = None) -> EncoderConfig:
        """Returns the configuration; `vocab_size` is used if the file has none, else required."""
        if not self.is_of_transformers:
            config = ENCODERS[self.model_type].config
            if not isinstance(self.values, dict):
                return config.from_json_file(self.path)  # raises an error that says what is wrong
            default = {} if vocab_size is None else {"vocab_size": vocab_size}
            return config.from_dict({**default, **self.values}, self.path)
        model = self.transformers_model
        if model.model_type != self.model_type:
            raise InputError(
                f"{self.path} must describe a model of the kind {ENCODERS[self.model_type].title}. "
                f"Received: {model.kind}, which is {ENCODERS[model.model_type].title} here "
                "(--config_file takes any)"
            )
        return model.config


class Described:
    """Base class of objects whose `config_file` gives a model's kind and sizes."""

    @property
    def config_file(self) -> ConfigFile:
        """The configuration file; subclasses must define it."""
        raise NotImplementedError

    @property
    def model_type(self) -> str:
        """The model type, a key of `ENCODERS`."""
        return self.config_file.model_type

    @property
    def encoder(self) -> Encoder:
        """The `Encoder` of the model type."""
        return ENCODERS[self.model_type]

    @property
    def config(self) -> EncoderConfig:
        """The model's configuration, for example a `BertConfig`."""
        return self.config_file.config
