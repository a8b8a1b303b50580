"""Reads the state of a training from its folder, to resume it in the same way."""

import dataclasses
import functools
import os
from typing import TYPE_CHECKING, Self

from bert_common.errors import InputError
from bert_tf.checkpoint_files import latest_checkpoint
from bert_tf.config import EncoderConfig, unseen_differences
from model_formats.config_file import ConfigFile
from model_formats.encoders import ENCODERS
from model_formats.model_folder import stages_of
from model_formats.training_record import Stage, trained_by, trained_objective
from tokenization.loading import Tokenizer, load_tokenizer

if TYPE_CHECKING:
    from run_scripts.flags.training import TrainingFlags


@dataclasses.dataclass(frozen=True)
class Begun:
    """The state of a training in its folder, each file read once; empty if none began."""

    folder: str  # --output_dir, or the folder of a seed in it
    model_type: str  # of the model to train there, a key of `ENCODERS`
    checkpoint: str | None  # the newest one; None: no training began

    @classmethod
    def of(cls, folder: str, model_type: str) -> Self:
        """Opens a folder, which may not exist yet."""
        return cls(folder, model_type, latest_checkpoint(folder))

    @functools.cached_property
    def stages(self) -> list[Stage]:
        """The stages of the model's training, this one last; see `training_record`."""
        return stages_of(self.checkpoint)

    @functools.cached_property
    def config(self) -> EncoderConfig | None:
        """The model's configuration; None without a checkpoint or one of this model type."""
        path = os.path.join(self.folder, ENCODERS[self.model_type].config_file)
        if self.checkpoint is None or not os.path.isfile(path):
            return None
        return ConfigFile(path, self.model_type).config

    def check_encoder(self) -> None:
        """Raises an `InputError` if the folder has another kind of model's configuration.

        With two configurations beside its checkpoints, no program could read the model.
        """
        own = ENCODERS[self.model_type]
        for other in ENCODERS.values():
            path = os.path.join(self.folder, other.config_file)
            if other.config_file != own.config_file and os.path.isfile(path):
                raise InputError(
                    "--output_dir must not hold another kind of model (take another folder, or "
                    "remove the file if no checkpoint there belongs to it). Received: "
                    f"{path}, now for {own.title}"
                )

    def check_objective(self, given: str, of_records: str | None) -> None:
        """Raises an `InputError` if --objective (`given`) or the records do not fit the training.

        `of_records` is --objective too if it uses no sentence pairs; None skips the records' check.
        """
        own, begun = trained_by(self.stages), trained_objective(self.stages)
        if own and own != given:
            raise InputError(
                f"--objective must be {own}, with which the training in {self.folder} began. "
                f"Received: {given}"
            )
        if of_records and begun and of_records != begun:
            raise InputError(
                f"--input_file must hold records of --objective={begun}, with which the training "
                f"in {self.folder} began. Received: records of --objective={of_records}"
            )

    def check_model(self, config: EncoderConfig, tokenizer: Tokenizer | None) -> None:
        """Raises an `InputError` if the tokenizer or a setting that no shape shows has changed."""
        trained = self.config
        for name in unseen_differences(trained, config) if trained else ():
            raise InputError(
                f"{name} of the configuration must be {getattr(trained, name)}, with which the "
                f"training in {self.folder} began. Received: {getattr(config, name)}"
            )
        if tokenizer is None or self.checkpoint is None:
            return
        try:
            begun, given = load_tokenizer(self.folder).fingerprint(), tokenizer.fingerprint()
        except InputError:  # none, or an incomplete one, which is rewritten
            return
        if begun != given:
            raise InputError(
                f"the tokenizer must be that in {self.folder}, with which the training there "
                f"began, fingerprint {begun[:12]}... Received: fingerprint {given[:12]}..."
            )

    def check_kept(self, flags: "TrainingFlags") -> None:
        """Raises an `InputError` if a `kept` flag differs from the training's original value."""
        settings = self.stages[-1].get("settings") if self.stages else None
        if not isinstance(settings, dict):
            return
        for field in dataclasses.fields(flags):
            if not field.metadata["kept"]:
                continue
            name, given = field.name, getattr(flags, field.name)
            begun = settings.get(name, field.default)
            is_path = field.metadata["is_path"] and isinstance(begun, str) and given
            if os.path.abspath(begun) != os.path.abspath(given) if is_path else begun != given:
                must = f"be {begun}, with which the training in {self.folder} began"
                if begun is None:
                    must = f"not be given: the training in {self.folder} began without it"
                raise InputError(f"--{name} must {must}. Received: --{name}={given}")
