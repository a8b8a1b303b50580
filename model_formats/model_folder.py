"""Reads and writes a model's folder: configuration, checkpoint, tokenizer, task and training.

The folder was written by this project, or is an unpacked released model: Google's BERT
(bert_config.json, bert_model.ckpt, vocab.txt), Google's ALBERT (albert_config.json,
model.ckpt-best, 30k-clean.model), an ALBERT of TensorFlow Hub (folders "assets" and "variables"),
or a folder of Hugging Face's transformers (config.json, model.safetensors).
"""

import dataclasses
import functools
import glob
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.folders import kind_of_path
from bert_tf.checkpoint_files import BEST_FOLDER
from bert_tf.config import EncoderConfig
from model_formats.config_file import ConfigFile, Described
from model_formats.difference_files import Difference
from model_formats.encoders import ENCODERS
from model_formats.folder_tokenizer import find_tokenizer_files
from model_formats.folder_weights import find_checkpoint
from model_formats.task_records import SETTINGS_FILE, TASK_KEY, find_task, read_settings_file
from model_formats.training_record import (
    Stage,
    read_stages,
    read_trained_positions,
    write_stages,
    write_trained_positions,
)
from model_formats.transformers_files.config import CONFIG_FILE
from model_formats.transformers_files.sentence_modules import read_sentence_modules
from model_formats.transformers_files.task_settings import check_head, settings_of
from tokenization import save_tokenizer
from tokenization.loading import Tokenizer, open_named

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel

# The model that comes with this project, at the root of a checkout or next to the packages of an
# installation, as written by `export_model.py --format=huggingface --precision=float16`.
REFERENCE_MODEL = os.path.join(os.path.dirname(os.path.dirname(__file__)), "reference_model")

# The difference that turns it into a model of vectors for search and comparison, as written by
# `export_model.py --format=difference --precision=float16`.
REFERENCE_VECTORS = os.path.join(os.path.dirname(REFERENCE_MODEL), "reference_vectors")

# Both models, by the name that users can give from any folder.
SHIPPED_MODELS = {os.path.basename(path): path for path in (REFERENCE_MODEL, REFERENCE_VECTORS)}


@dataclasses.dataclass(frozen=True)
class ModelFolder(Described):
    """A model's folder, whose files are read once, when they are first needed."""

    path: str  # the folder with the configuration and the records of the training
    named: str | None = None  # the folder that the user named, if it is this one's parent
    chosen: str | None = None  # the checkpoint to use; None for the best, else the newest

    def __fspath__(self) -> str:
        """Returns the path, so that `os.path.join` accepts the folder of a loaded model."""
        return self.path

    @classmethod
    def open(
        cls,
        directory: str,
        checkpoint: str | None = None,
        *,
        what: str = "--model_dir",
        needs_config: bool = True,
    ) -> Self:
        """Opens a model's folder, which is `directory` or its only subfolder with a model.

        Args:
            directory: where to look.
            checkpoint: one of its checkpoints; None for the best, else the newest.
            what: the folder's name in error messages.
            needs_config: whether a configuration is required; best/ has none.

        Raises:
            InputError: `directory` is not a folder, or it holds no model, or several.
        """
        if (kind := kind_of_path(directory)) != "a folder":
            raise InputError(f"{what} must be a folder. Received: {directory}, {kind}")
        folder = cls(os.path.normpath(directory), None, checkpoint)
        if folder.config_files:
            return folder
        inside = sorted(glob.glob(os.path.join(glob.escape(directory), "*", "")))
        folders = [cls(os.path.normpath(path), directory, checkpoint) for path in inside]
        folders = [inner for inner in folders if inner.config_files]
        if not folders and not needs_config:
            return folder
        if not folders:
            raise InputError(
                f"{what} must hold {_config_names()}, or {CONFIG_FILE} of "
                f"transformers. Received: {directory}"
            )
        if len(folders) > 1:
            raise InputError(
                f"{what} must be the folder of one model. Received: {directory}, which holds "
                f"{', '.join(os.path.basename(folder.path) for folder in folders)}"
            )
        return folders[0]

    @classmethod
    def beside(cls, checkpoint: str) -> Self:
        """Returns the folder that describes a checkpoint; it may hold no configuration."""
        folder = os.path.dirname(os.path.abspath(checkpoint))
        if cls(folder).is_inside_another:
            folder = os.path.dirname(folder)
        return cls(folder, None, checkpoint)

    @property
    def is_inside_another(self) -> bool:
        """Whether it is the subfolder in which training keeps its best checkpoint."""
        # A model's own folder may have this name too. abspath gives "." its real name.
        name = os.path.basename(os.path.abspath(self.path))
        return name == BEST_FOLDER and not self.config_files

    @functools.cached_property
    def difference(self) -> Difference | None:
        """The `Difference` that the folder holds instead of full weights, or None."""
        return Difference.of(self.path)

    @functools.cached_property
    def base(self) -> "ModelFolder":
        """The folder with configuration and tokenizer: a difference's base, else this folder.

        Raises:
            InputError: a difference's base holds no model, or is a difference itself.
        """
        if self.difference is None:
            return self
        directory = self.difference.base
        if Difference.of(directory) is not None:
            raise InputError(
                f"the base of {self.path} must hold all weights. Received: {directory}, a "
                "difference itself"
            )
        return ModelFolder.open(directory, what=f"the base of {self.path}")

    @functools.cached_property
    def transformers_config(self) -> ConfigFile | None:
        """The `ConfigFile` of transformers' config.json, or None."""
        file = ConfigFile(os.path.join(self.path, CONFIG_FILE))
        return file if os.path.isfile(file.path) and file.is_of_transformers else None

    @functools.cached_property
    def config_files(self) -> list[ConfigFile]:
        """The `ConfigFile`s of the folder; a valid model's folder has exactly one."""
        if self.difference is not None:
            return self.base.config_files
        files = [
            ConfigFile(os.path.join(self.path, encoder.config_file), encoder.name)
            for encoder in ENCODERS.values()
        ]
        found = [file for file in files if os.path.isfile(file.path)]
        return found or list(filter(None, [self.transformers_config]))

    @property
    def config_file(self) -> ConfigFile:
        """The only `ConfigFile` of the folder; any other number is an `InputError`."""
        if len(self.config_files) != 1:
            raise InputError(
                f"a model's folder must hold {_config_names()}. Received: "
                f"{self.path} with {'both' if self.config_files else 'neither'}"
            )
        return self.config_files[0]

    @functools.cached_property
    def checkpoint(self) -> str:
        """The prefix of the model's checkpoint, or its safetensors file."""
        if self.chosen is None and self.difference is not None:
            return self.difference.weights
        return self.chosen or find_checkpoint(self.path, self.is_inside_another)

    def tokenizer_files(self, do_lower_case: bool | None = None) -> dict[str, Any]:
        """Returns the tokenizer's files and lower-casing flag, as `find_tokenizer_files`."""
        return find_tokenizer_files(self.base, do_lower_case)

    @functools.cached_property
    def tokenizer(self) -> Tokenizer | None:
        """The tokenizer; None if the folder holds none.

        Raises:
            InputError: see `find_tokenizer_files`; or the files are malformed.
        """
        files = self.tokenizer_files()
        return open_named(**files) if files else None

    @property
    def is_fine_tuned(self) -> bool:
        """Whether this project's fine-tuning wrote the folder."""
        return os.path.exists(os.path.join(self.path, SETTINGS_FILE))

    @functools.cached_property
    def transformers_settings(self) -> dict[str, Any]:
        """The task settings in transformers' files, even next to Google's; {} if there are none."""
        file = self.transformers_config
        if file is None or self.difference is not None:
            return {}
        try:
            modules = read_sentence_modules(self.path)
        except InputError:  # raised again by code that needs vectors; the encoder is readable
            modules = None
        encoder = ENCODERS[file.model_type].defaults
        return settings_of(file.values, file.config, file.path, modules, encoder)

    @functools.cached_property
    def record(self) -> tuple[str, dict[str, Any]]:
        """The file that records the task, and its contents; {} for a pre-trained model."""
        path, file = os.path.join(self.path, SETTINGS_FILE), self.transformers_config
        if self.is_fine_tuned:
            return path, read_settings_file(path)
        if file in self.config_files:
            return file.path, self.transformers_settings
        return path, {}

    @property
    def settings(self) -> dict[str, Any]:
        """The recorded settings of a fine-tuned model, without the task's name.

        Raises:
            InputError: the head is not supported here, although the encoder is readable.
        """
        (path, record), file = self.record, self.transformers_config
        if file and file.path == path:
            check_head(file.values, path)
        return {name: value for name, value in record.items() if name != TASK_KEY}

    @functools.cached_property
    def task(self) -> str:
        """The model's task, "pretraining" or a key of `finetuning.tasks.TASKS`."""
        path, record = self.record
        return find_task(record, path)

    @functools.cached_property
    def trained_positions(self) -> int | None:
        """The number of positions that the checkpoint was trained with; None if unknown.

        Raises:
            InputError: the file is malformed.
        """
        return read_trained_positions(self._folder_of_checkpoint)

    @functools.cached_property
    def stages(self) -> list[Stage]:
        """The stages of the checkpoint's training, the earliest first; see `training_record`."""
        return read_stages(self._folder_of_checkpoint)

    @property
    def _folder_of_checkpoint(self):
        """The folder with the records of the checkpoint's training."""
        return ModelFolder.beside(self.chosen).path if self.chosen else self.path

    @staticmethod
    def write(
        directory: str,
        model_type: str,
        config: EncoderConfig,
        *,
        tokenizer: Tokenizer | None,
        positions: int | None,
        task: str = "pretraining",
        settings: Mapping[str, Any] | None = None,
        stages: Sequence[Stage] = (),
    ) -> None:
        """Writes everything that a complete model folder holds besides the weights.

        `positions` is the number of trained positions, None if unknown. `task`, `settings` and
        `stages` are as in the properties of this class.
        """
        write_json(os.path.join(directory, ENCODERS[model_type].config_file), config.to_dict())
        if tokenizer is not None:
            save_tokenizer(tokenizer, directory)
        write_records(directory, positions, task, settings or {}, stages)


def write_records(
    directory: str,
    positions: int | None,
    task: str,
    settings: Mapping[str, Any],
    stages: Sequence[Stage],
) -> None:
    """Writes the records of task and training, with the arguments of `ModelFolder.write`."""
    write_trained_positions(directory, positions)
    if task != "pretraining":
        write_json(os.path.join(directory, SETTINGS_FILE), {TASK_KEY: task, **settings})
    write_stages(directory, stages)


def write_description(loaded: "LoadedModel", directory: str) -> None:
    """Writes everything that the folder of a `LoadedModel` holds besides the weights."""
    ModelFolder.write(
        directory,
        loaded.model_type,
        loaded.config,
        tokenizer=loaded.tokenizer,
        positions=loaded.trained_positions,
        task=loaded.task,
        settings=loaded.settings,
        stages=loaded.stages,
    )


def _config_names():
    return " or ".join(encoder.config_file for encoder in ENCODERS.values())


def stages_of(checkpoint: str | None) -> list[Stage]:
    """Returns the training stages of a checkpoint; empty for None."""
    return ModelFolder.beside(checkpoint).stages if checkpoint else []


def add_trained_positions(checkpoint: str | None, longest: int) -> int | None:
    """Returns the number of trained positions after this run; None if unknown before it.

    `checkpoint` is the checkpoint that training starts from, or None for new weights.
    """
    if checkpoint is None:
        return longest
    known = ModelFolder.beside(checkpoint).trained_positions
    return known and max(known, longest)


def warn_of_untrained_positions(checkpoint: str, longest: int, what: str) -> None:
    """Warns if a sequence is longer than the checkpoint's training sequences."""
    known = ModelFolder.beside(checkpoint).trained_positions
    if known is not None and longest > known:
        warnings.warn(
            f"{what} has {longest} tokens, but {checkpoint} was trained on sequences of at most "
            f"{known}: its weights for the positions after that are untrained (pre-train it "
            "further on longer sequences, or make the input shorter)",
            stacklevel=2,
        )
