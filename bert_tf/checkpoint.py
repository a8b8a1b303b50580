"""Reads and writes the checkpoints of google-research/bert and albert, by a table of names.

A checkpoint is TensorFlow's own format (PREFIX.index, PREFIX.data-00000-of-00001), holding
Google's variable names: what this project writes, tools made for Google's files can read.
"""

import dataclasses
import glob
import os
import re

import numpy as np
import tensorflow as tf

from tokenization.errors import InputError

# What a checkpoint may hold beyond the model, by name: never read as weights.
IGNORED_NAMES = (
    (r"^global_step$", "the training's step"),
    (r"/adam_[mv]$", "the optimizer's moments"),
    (r"^cls/(predictions|seq_relationship)/", "the pre-training heads"),
    (r"^output_(weights|bias)$|^cls/squad/", "a downstream task's head"),
)

# What TensorFlow's reader raises on a damaged file, depending on where the damage is.
_READ_ERRORS = (tf.errors.OpError, ValueError, RuntimeError, IndexError)

FIRST_MOMENT_SUFFIX = "/adam_m"
SECOND_MOMENT_SUFFIX = "/adam_v"
STEP_NAME = "global_step"


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What loading a checkpoint did, all in Google's names.

    Attributes:
        loaded: variables that were set.
        missing: variables of the model that the checkpoint lacks, as the caller allowed.
        ignored: what the checkpoint holds beyond the model.
        shape_mismatches: always empty here: a shape that differs is an error.
    """

    checkpoint: str
    loaded: tuple
    missing: tuple
    ignored: tuple
    shape_mismatches: tuple = ()

    def __str__(self):
        text = f"{self.checkpoint}: {len(self.loaded)} variables loaded"
        if self.missing:
            text += f", {len(self.missing)} keep their initial values ({', '.join(self.missing)})"
        return text + f", {len(self.ignored)} in the file left alone"


def google_variables(model):
    """The model's weights by Google's names.

    Args:
        model: a model with a table `google_names` (our path below the model's name -> Google's
            name, `{...}` standing for a number), and perhaps an `encoder` with its own.

    Returns:
        A dict: Google's name -> Keras variable, in the order of the model's weights.

    Raises:
        KeyError: a weight that no table names, which is a bug of the model.
    """
    parts = [part for part in (model, getattr(model, "encoder", None)) if part is not None]
    tables = {part.name: part.google_names for part in parts}
    variables = {}
    for variable in model.trainable_variables:
        owner, path = variable.path.split("/", 1)
        variables[google_name(tables[owner], path)] = variable
    return variables


def google_name(table, path):
    """Google's name of the variable at `path`; a path that no row matches is a KeyError."""
    for ours, googles in table.items():
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\d+)", re.escape(ours))
        match = re.fullmatch(pattern, path)
        if match:
            return googles.format(**match.groupdict())
    raise KeyError(f"no row of the checkpoint table matches the variable {path!r}")


def open_checkpoint(prefix):
    """Opens a checkpoint for reading.

    Raises:
        InputError: there is no checkpoint of that name, or it cannot be read.
    """
    if not glob.glob(glob.escape(prefix) + ".index"):
        raise InputError(f"a checkpoint needs a file {prefix}.index. Received: no such file")
    try:
        return tf.train.load_checkpoint(prefix)
    except _READ_ERRORS as error:
        raise InputError(f"cannot read the checkpoint {prefix}: {error}") from None


def read_tensor(reader, prefix, name):
    """One array of an open checkpoint; a damaged one is an InputError that names the file."""
    try:
        return reader.get_tensor(name)
    except _READ_ERRORS as error:
        raise InputError(f"cannot read {name} from the checkpoint {prefix}: {error}") from None


def load_google_checkpoint(model, checkpoint_prefix, allow_missing=()):
    """Sets a model's weights from a checkpoint of Google's, or from one of this project.

    Args:
        model: a BertModel, an AlbertModel, or a model around one of them.
        checkpoint_prefix: for example "uncased_L-12_H-768_A-12/bert_model.ckpt".
        allow_missing: beginnings of Google's names whose variables the file may lack, for
            example ("cls/",) for a checkpoint without the pre-training heads.

    Returns:
        A `LoadReport`.

    Raises:
        InputError: no such checkpoint; or variables that are missing, unexpected, or of
            another shape: all of them, in one message, before any weight is changed.
    """
    reader = open_checkpoint(checkpoint_prefix)
    shapes = reader.get_variable_to_shape_map()
    variables = google_variables(model)
    missing = [name for name in variables if name not in shapes]
    ignored = [
        name
        for name in sorted(shapes)
        if name not in variables and any(re.search(p, name) for p, _ in IGNORED_NAMES)
    ]
    problems = [
        f"- {name}: missing" for name in missing if not name.startswith(tuple(allow_missing))
    ]
    problems += [
        f"+ {name} {shapes[name]}: not part of the model"
        for name in sorted(shapes)
        if name not in variables and name not in ignored
    ]
    loaded = [name for name in variables if name in shapes]
    problems += [
        f"! {name}: the model has {list(variables[name].shape)}, the file {shapes[name]}"
        for name in loaded
        if tuple(shapes[name]) != tuple(variables[name].shape)
    ]
    if problems:
        raise InputError(
            f"the checkpoint {checkpoint_prefix} must fit the model. Received: "
            + "; ".join(problems)
        )
    for name in loaded:
        variables[name].assign(read_tensor(reader, checkpoint_prefix, name))
    return LoadReport(checkpoint_prefix, tuple(loaded), tuple(missing), tuple(ignored))


def write_arrays(prefix, arrays):
    """Writes a checkpoint file from arrays: to a temporary name, read back, then renamed.

    Args:
        prefix: the checkpoint's final name, without ".index".
        arrays: a dict: variable name -> NumPy array.

    Raises:
        OSError: the checkpoint could not be written whole; nothing bears its final name.
    """
    temporary = f"{prefix}.tmp-{os.getpid()}"
    names = sorted(arrays)
    try:
        tf.raw_ops.SaveV2(
            prefix=temporary,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            tensors=[arrays[name] for name in names],
        )
        reader = tf.train.load_checkpoint(temporary)
        for name in names:
            # Reading checks the stored checksum of every array.
            if not np.array_equal(reader.get_tensor(name), arrays[name], equal_nan=True):
                raise OSError(f"{prefix}: {name} was not written as it is in memory")
    except (OSError, *_READ_ERRORS) as error:
        remove_checkpoint(temporary)
        raise OSError(f"cannot write the checkpoint {prefix}: {error}") from None
    # The index last: without it the data file is no checkpoint.
    os.replace(f"{temporary}.data-00000-of-00001", f"{prefix}.data-00000-of-00001")
    os.replace(f"{temporary}.index", f"{prefix}.index")


def remove_checkpoint(prefix):
    """Removes the files of a checkpoint, the index first; what is not there is no error."""
    paths = [f"{prefix}.index", *glob.glob(f"{glob.escape(prefix)}.data-*")]
    for path in paths:
        if os.path.exists(path):
            os.remove(path)


def save_google_checkpoint(model, checkpoint_prefix):
    """Writes a model's weights under Google's names, for any tool that reads Google's files."""
    arrays = {name: np.asarray(v.value) for name, v in google_variables(model).items()}
    write_arrays(checkpoint_prefix, arrays)


def save_training_state(prefix, model, optimizer, step):
    """Writes everything that training goes on from: weights, both moments, the step.

    Learning rate, dropout and the order of examples are functions of the step.

    Args:
        prefix: the checkpoint's name, usually OUTPUT_DIR/model.ckpt-STEP.
        model: the model that is trained.
        optimizer: an optimizer of `bert_tf.optimization`, built.
        step: updates made so far.
    """
    arrays = {STEP_NAME: np.int64(step)}
    for name, variable in google_variables(model).items():
        first, second = optimizer.moments(variable)
        arrays[name] = variable.numpy()
        arrays[name + FIRST_MOMENT_SUFFIX] = first.numpy()
        arrays[name + SECOND_MOMENT_SUFFIX] = second.numpy()
    write_arrays(prefix, arrays)


def load_training_state(prefix, model, optimizer):
    """Reads what `save_training_state` wrote, or Google's own training wrote.

    A variable without moments in the file (it had no gradient) keeps zero moments.

    Returns:
        The step.

    Raises:
        InputError: the checkpoint does not fit the model, or holds no step.
    """
    load_google_checkpoint(model, prefix)
    reader = open_checkpoint(prefix)
    if not reader.has_tensor(STEP_NAME):
        raise InputError(f"to resume from {prefix} it must hold {STEP_NAME}. Received: none")
    for name, variable in google_variables(model).items():
        suffixes = (FIRST_MOMENT_SUFFIX, SECOND_MOMENT_SUFFIX)
        for moment, suffix in zip(optimizer.moments(variable), suffixes, strict=True):
            if reader.has_tensor(name + suffix):
                moment.assign(read_tensor(reader, prefix, name + suffix))
    return int(read_tensor(reader, prefix, STEP_NAME))


def checkpoint_path(directory, step):
    """The name of the checkpoint after `step` updates, as google-research/bert names it."""
    return os.path.join(directory, f"model.ckpt-{step}")


def list_checkpoints(directory):
    """The steps of all whole checkpoints in a directory, oldest first."""
    indexes = glob.glob(os.path.join(glob.escape(str(directory)), "model.ckpt-*.index"))
    steps = [re.search(r"model\.ckpt-(\d+)\.index$", path) for path in indexes]
    return sorted(int(match.group(1)) for match in steps if match)


def latest_checkpoint(directory):
    """The newest checkpoint's name, or None; unlike TensorFlow's, needs no state file."""
    steps = list_checkpoints(directory)
    return checkpoint_path(directory, steps[-1]) if steps else None


def keep_newest(directory, count):
    """Removes all but the `count` newest checkpoints (0 keeps all), notes what is left."""
    if count:
        for step in list_checkpoints(directory)[:-count]:
            remove_checkpoint(checkpoint_path(directory, step))
    # The file "checkpoint" is what `tf.train.latest_checkpoint` and Google's programs read.
    names = [f"model.ckpt-{step}" for step in list_checkpoints(directory)]
    lines = [f'model_checkpoint_path: "{names[-1]}"\n']
    lines += [f'all_model_checkpoint_paths: "{name}"\n' for name in names]
    path = os.path.join(directory, "checkpoint")
    with open(f"{path}.tmp-{os.getpid()}", "w", encoding="utf-8") as file:
        file.writelines(lines)
    os.replace(file.name, path)
