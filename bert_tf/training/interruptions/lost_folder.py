"""Makes the output directory again after it was removed or renamed during training."""

import dataclasses
import os
import tempfile
import warnings

from bert_common.errors import InputError
from bert_tf.training.state import save


def make_again(folder, write_model_files, state, config):
    """Makes the output directory with its descriptions again; the arguments as for `train`.

    Raises:
        InputError: another training has begun there, or the folder cannot be made; the weights
            are saved elsewhere.
    """
    try:
        folder.make_again()
        write_model_files(config.output_dir)
    except (InputError, OSError) as error:
        reason = error
        if isinstance(error, OSError):
            reason = f"{config.output_dir} cannot be made again ({error.strerror})"
        other_folder = _save_elsewhere(write_model_files, state, config)
        raise InputError(
            f"{reason}; this training's files there were removed or renamed, so it ends at step "
            f"{state.step}, saved in {other_folder}: --output_dir={other_folder} continues from "
            "there"
        ) from None
    warnings.warn(
        f"{config.output_dir} was removed or renamed while training: after step {state.step} it "
        "is made again, with the configuration and new curves, and the next checkpoint goes there",
        stacklevel=2,
    )


def _save_elsewhere(write_model_files, state, config):
    """Saves next to the output directory, or if that fails, among the temporary files."""
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
