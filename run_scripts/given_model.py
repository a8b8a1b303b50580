"""Finds the model that a program's flags name, each part by its own flag or in a folder."""

import dataclasses
import functools
import os
from typing import Self

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from model_formats.config_file import ConfigFile, Described
from model_formats.folder_tokenizer import check_table
from model_formats.model_folder import REFERENCE_MODEL, ModelFolder
from model_formats.weights import find_weights
from run_scripts.flags.tokenizer import (
    TokenizerFlags,
    check_tokenizer_flags,
    open_tokenizer,
    source_of,
)
from run_scripts.flags.training import NO_CONFIG, ModelFlags, given_config
from tokenization.loading import Tokenizer


@dataclasses.dataclass(frozen=True)
class GivenModel(Described):
    """The parts of a model, each from its own flag or else from a folder."""

    flags: ModelFlags  # a program's parsed flags, `ModelFlags` with init_checkpoint
    folder: ModelFolder | None  # the `ModelFolder` of --model_dir, or None
    # The folder of an earlier fine-tuning, for the parts that nothing else names; or None.
    fine_tuned: ModelFolder | None = None
    folder_has_weights: bool = True  # whether the weights are from `folder` if no flag names any
    resumes: bool = False  # whether training goes on from its own weights, so none are read here

    @classmethod
    def of(cls, flags: ModelFlags, directory: str | None = None) -> Self:
        """Opens the folder `directory`, or without one --model_dir."""
        directory = directory or flags.model_dir
        return cls(flags, ModelFolder.open(directory) if directory else None)

    @property
    def folders(self) -> list[ModelFolder]:
        """The folders in order of precedence."""
        return [folder for folder in (self.folder, self.fine_tuned) if folder]

    @functools.cached_property
    def config_file(self) -> ConfigFile:
        """The configuration file of a flag, else of a folder; an `InputError` if there is none."""
        file = given_config(self.flags)
        if not (file or self.folders):
            raise InputError(NO_CONFIG.format("none"))
        return file or self.folders[0].config_file

    @functools.cached_property
    def checkpoint(self) -> str | None:
        """A checkpoint's prefix or a safetensors file; None for new weights.

        If the model `resumes`, it is the flag's value, for messages; nothing may be left there.
        """
        if self.resumes:
            return self.flags.named_weights
        if path := self.flags.named_weights:
            return find_weights(path) if os.path.isdir(path) else path
        return self.folder.checkpoint if self.folder and self.folder_has_weights else None

    @functools.cached_property
    def checkpoint_folder(self) -> ModelFolder:
        """The `ModelFolder` of the checkpoint, which may differ from --model_dir."""
        assert self.checkpoint, "new weights are in no folder"
        folder = ModelFolder.beside(self.checkpoint)
        if self.folder and os.path.abspath(self.folder.path) == folder.path:
            return self.folder
        return folder

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer; see `open_model_tokenizer`."""
        assert isinstance(self.flags, TokenizerFlags)
        return open_model_tokenizer(self.flags, self.config, *self.folders)


def find_directory(flags: TokenizerFlags) -> str | None:
    """Returns --model_dir, or the model that comes with this project if no flag names a model."""
    # An empty value counts as given: it may come from a variable that a shell script did not set.
    if any(getattr(flags, f.name, None) is not None for f in dataclasses.fields(ModelFlags)):
        return getattr(flags, "model_dir", None)
    if source := source_of(flags):
        raise InputError(f"a tokenizer must be given with its model. Received: {source} alone")
    print(f"note: the model is {REFERENCE_MODEL}; --model_dir chooses another")
    return REFERENCE_MODEL


def named_tokenizer(flags: TokenizerFlags, *folders: ModelFolder) -> TokenizerFlags:
    """Returns the `TokenizerFlags` of the named tokenizer, else of the first folder with one."""
    named = {field.name: getattr(flags, field.name) for field in dataclasses.fields(TokenizerFlags)}
    if not source_of(flags):
        found = (folder.tokenizer_files(flags.do_lower_case) for folder in folders)
        named |= next(filter(None, found), {})
    return TokenizerFlags(**named)


def open_model_tokenizer(
    flags: TokenizerFlags, config: EncoderConfig, *folders: ModelFolder
) -> Tokenizer:
    """Opens the tokenizer that `named_tokenizer` finds, and checks that it fits the model."""
    named = named_tokenizer(flags, *folders)
    check_tokenizer_flags(named, getattr(flags, "model_dir", None))
    tokenizer = open_tokenizer(named)
    check_table(config, tokenizer.vocab_size, str(source_of(named)))
    return tokenizer
