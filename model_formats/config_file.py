"""Reads a model's configuration file once, whichever project wrote it."""

import dataclasses
import functools
import os
from typing import Any

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_tf.config import EncoderConfig, is_of_transformers
from model_formats.encoders import ENCODERS, Encoder
from model_formats.transformers_files.config import HuggingFaceModel, from_huggingface


@dataclasses.dataclass(frozen=True)
class ConfigFile:
    """A bert_config.json, an albert_config.json, or a config.json of transformers.

    What hidden_act means differs between ours and theirs, so a file is recognized by its keys.
    """

    path: str
    # The model type that its folder or its flag says, a key of `ENCODERS`; None: the file says it.
    expected: str | None = None

    @functools.cached_property
    def values(self) -> Any:
        """What the file holds; None if it is no JSON."""
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
        """The `HuggingFaceModel` of a file of transformers; an InputError as `from_huggingface`."""
        return from_huggingface(self.values, self.path, self.expected)

    @property
    def model_type(self) -> str:
        """The model type, a key of `ENCODERS`."""
        if self.expected:
            return self.expected
        return self.transformers_model.model_type if self.is_of_transformers else self._nearest()

    def _nearest(self):
        """The encoder whose keys the file has; of several the one that its name begins with."""
        name = os.path.basename(self.path)
        keys = set(self.values) if isinstance(self.values, dict) else set()

        def distance(encoder):
            known = {field.name for field in dataclasses.fields(encoder.config)}
            return len(keys - known), not name.startswith(encoder.name)

        return min(ENCODERS.values(), key=distance).name

    @functools.cached_property
    def config(self) -> EncoderConfig:
        """The model's `BertConfig` or `AlbertConfig`; refuses a file of another kind of model."""
        return self.config_with()

    def config_with(self, vocab_size: int | None = None) -> EncoderConfig:
        """The configuration, with `vocab_size` if the file has none; None refuses such a file."""
        if not self.is_of_transformers:
            config = ENCODERS[self.model_type].config
            if not isinstance(self.values, dict):
                return config.from_json_file(self.path)  # which says what is wrong
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
    """What has a `config_file`, which says the kind and the sizes of a model."""

    @property
    def config_file(self) -> ConfigFile:
        """The file; each subclass finds it."""
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
