"""Recreates the output directory after it was removed or renamed during training."""

import dataclasses
import os
import tempfile
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_tf.training.interruptions.output_folder import TrainingFolder
from bert_tf.training.state import TrainingState, save

if TYPE_CHECKING:  # it imports this module
    from bert_tf.training.loop import TrainingConfig


def recreate_output_dir(
    folder: TrainingFolder,
    write_model_files: Callable[[str], Any],
    state: TrainingState,
    config: "TrainingConfig",
) -> None:
    """Recreates the output directory with its model files; the arguments are as for `train`.

    If that fails or another training has started there, saves elsewhere and raises an InputError.
    """
    try:
        folder.recreate()
        write_model_files(config.output_dir)
    except (InputError, OSError) as error:
        reason = error
        if isinstance(error, OSError):
            reason = f"{config.output_dir} cannot be recreated ({error.strerror})"
        other_folder = _save_elsewhere(write_model_files, state, config)
        raise InputError(
            f"{reason}; the output folder was removed or renamed: training stops at step "
            f"{state.step}, saved in {other_folder}; continue with --output_dir={other_folder}"
        ) from None
    warnings.warn(
        f"{config.output_dir} was removed or renamed while training: it was recreated after "
        f"step {state.step} with the configuration and new curves; later checkpoints go there",
        stacklevel=2,
    )


def _save_elsewhere(write_model_files, state, config):
    """Saves next to the output directory, or among the temporary files if that fails."""
    parent, name = os.path.split(os.path.abspath(config.output_dir))
    for place in (parent, tempfile.gettempdir()):
        folder = os.path.join(place, f"{name}-step-{state.step}")
        try:
            save(state, dataclasses.replace(config, output_dir=folder))
            write_model_files(folder)
            return folder
        except (InputError, OSError) as error:
            failure = error
    raise failure
