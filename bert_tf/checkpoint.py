"""Reads and writes models as Google's checkpoints, using tables of variable names.

A checkpoint is in TensorFlow's own format (PREFIX.index, PREFIX.data-00000-of-00001, an empty
PREFIX.meta) with Google's variable names, so that tools for Google's files can read it.
"""

import dataclasses
import difflib
import errno
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.checkpoint_files import (
    exists,
    is_pattern,
    link_to,
    link_to_checkpoint,
    remove_checkpoint,
    rename_checkpoint,
    step_of,
)
from bert_tf.config import EncoderConfig, unseen_differences
from bert_tf.names import REPLACED_TOKENS_NAMES
from bert_tf.optimization import OPTIMIZERS, DecayOptimizer

# Heads in a checkpoint that a model may lack, as regular expressions. Heads of downstream tasks,
# including new ones added here, are ignored by every model that lacks them.
TASK_HEAD_NAMES = r"^output_(weights|bias)$|^cls/squad/|^(start_logits|end_logits|answer_class)/"
# Pre-training heads are ignored only by a model that has none of them, such as an encoder.
HEAD_NAMES = r"^cls/(predictions|seq_relationship)/"

# The end of Google's name of an encoder's token embeddings, after the stem of all its names.
TABLE = "embeddings/word_embeddings"

# The errors of TensorFlow's reader for a damaged file, depending on where the damage is.
_READ_ERRORS = (tf.errors.OpError, ValueError, RuntimeError, IndexError)

# The maximum number of listed mismatches between a checkpoint and the model.
SHOWN_PROBLEMS = 20

STEP_NAME = "global_step"

# Variables that this project's training checkpoints may hold besides weights, slots and step.
COUNTERS = (
    "skipped_steps", "evaluated_step", "data_order", "loss_scale", "loss_scale_good_steps",
    "spent_seconds", "token_losses",
)  # fmt: skip


class DamagedCheckpoint(InputError):
    """Raised when a checkpoint exists but cannot be read completely."""


@dataclasses.dataclass(frozen=True)
class CheckpointArrays:
    """The arrays of a checkpoint of any format, by Google's names."""

    source: str  # the file or folder, for messages
    shapes: Mapping[str, Sequence[int]]  # Google's name -> the array's shape
    # Returns the array of a name, or raises `InputError`.
    read: Callable[[str], np.ndarray]
    # Parts in the sense of `part_names` that files of this format may lack for any model.
    optional: tuple[str, ...] = ()
    # The file's own names of arrays that no model needs.
    ignored: tuple[str, ...] = ()
    # The configuration stored with the file, if its format always has one.
    config: EncoderConfig | None = None
    # Regular expressions for the beginnings of names that models without these heads ignore.
    heads: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """The result of loading a checkpoint, in Google's names."""

    checkpoint: str
    loaded: tuple[str, ...]  # variables that were set
    missing: tuple[str, ...]  # variables that the checkpoint lacks, as allowed
    ignored: tuple[str, ...]  # names in the checkpoint that the model does not have

    def __str__(self) -> str:
        text = f"{self.checkpoint}: {len(self.loaded)} variables loaded"
        if self.missing:
            text += f", {len(self.missing)} keep their initial values ({', '.join(self.missing)})"
        return text + f", {len(self.ignored)} in the file ignored"


def google_variables(model: Any) -> dict[str, Any]:
    """Returns a dict of Google's name -> the model's weight, in the order of the weights.

    The model has a table `google_names` (our path below the model's name -> Google's name; `{...}`
    stands for text without slash or period), and so have its `networks`, if any. A weight that is
    in no table raises a KeyError, as it is a bug of the model.
    """
    parts = (model, *getattr(model, "networks", ()))
    tables = {part.name: part.google_names for part in parts}
    variables = {}
    for variable in model.weights:  # including those that Keras does not train
        owner, path = variable.path.split("/", 1)
        name = google_name(path, tables[owner])
        if name is None:
            raise KeyError(f"no row of the checkpoint table matches the variable {path!r}")
        variables[name] = variable
    return variables


def part_names(model: Any, *parts: str) -> list[str]:
    """Returns Google's names of the weights in some parts of a model.

    A part is our name of a layer of the model or its encoder, such as "pooler", or of another of
    the model's networks.
    """
    variables = google_variables(model).items()
    return [name for name, v in variables if not {*parts}.isdisjoint(v.path.split("/")[:2])]


def google_name(path: str, table: Mapping[str, str]) -> str | None:
    """Returns Google's name of the weight at `path`; None if no row of the table matches."""
    for ours, googles in table.items():
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^./]+)", re.escape(ours))
        match = re.fullmatch(pattern, path)
        if match:
            return googles.format(**match.groupdict())
    return None


def open_checkpoint(prefix: str) -> Any:
    """Opens a checkpoint; raises InputError if missing, `DamagedCheckpoint` if unreadable."""
    if not exists(prefix):
        raise InputError(f"a checkpoint needs a file {prefix}.index. Received: no such file")
    try:
        return _open(prefix)
    except _READ_ERRORS as error:
        raise DamagedCheckpoint(f"cannot read the checkpoint {prefix}: {error}") from None


def _open(prefix):
    folder, name = os.path.split(prefix)
    if is_pattern(name):
        return tf.train.load_checkpoint(link_to_checkpoint(os.path.abspath(prefix)))
    if is_pattern(folder):
        folder = link_to(os.path.abspath(folder))
    return tf.train.load_checkpoint(os.path.join(folder, name))


def read_tensor(reader: Any, prefix: str, name: str) -> np.ndarray:
    """Reads an array of an open checkpoint; raises a `DamagedCheckpoint` that names the file."""
    try:
        return reader.get_tensor(name)
    except _READ_ERRORS as error:
        raise DamagedCheckpoint(
            f"cannot read {name} from the checkpoint {prefix}: {error}"
        ) from None


def trained_step(prefix: str) -> int:
    """Returns the step in a checkpoint's name, else the one that it holds; 0 if there is neither.

    google-research/albert's "model.ckpt-best" and checkpoints renamed by users hold it alone.
    """
    step = step_of(prefix)
    if step or not exists(prefix):
        return step
    reader = open_checkpoint(prefix)
    return int(read_tensor(reader, prefix, STEP_NAME)) if reader.has_tensor(STEP_NAME) else 0


def google_arrays(prefix: str, stems: Sequence[str] = ()) -> CheckpointArrays:
    """Opens the arrays of a checkpoint by Google or this project; raises like `open_checkpoint`.

    Args:
        stems: the prefixes of the encoder's names, for example "bert/". A different prefix of a
            model that was part of another one, such as "module/bert/", is replaced by a stem, with
            a warning. Without stems, names are unchanged.
    """
    reader = open_checkpoint(prefix)
    shapes = reader.get_variable_to_shape_map()
    names = {name: name for name in shapes}
    others = [name.removesuffix(TABLE) for name in names if name.endswith(TABLE)]
    if stems and len(others) == 1 and not any(name.startswith(tuple(stems)) for name in names):
        (other,) = others
        stem = next((stem for stem in stems if other.endswith(f"/{stem}")), stems[0])
        warnings.warn(
            f"{prefix}: the model's variables begin with {other!r} there, which is read as "
            f"{stem!r}",
            stacklevel=2,
        )
        # The heads' names have this prefix too.
        outer = other.removesuffix(stem) if other.endswith(f"/{stem}") else ""
        # Without a prefix, only these names tell what is not of the encoder.
        aside = _ignored_names((), (), None)
        names = {
            stem + name.removeprefix(other)
            if name.startswith(other) and not aside.search(name)
            else name.removeprefix(outer): name
            for name in shapes
        }
        if len(names) < len(shapes):
            raise InputError(
                f"the checkpoint {prefix} must hold one model. Received: several names that end "
                f"alike, such as {sorted(set(shapes) - set(names.values()))[0]}"
            )
    return CheckpointArrays(
        str(prefix),
        {name: shapes[stored] for name, stored in names.items()},
        lambda name: read_tensor(reader, prefix, names[name]),
    )


def _training_names(optimizer=None):
    """Returns a regular expression for the training's counters and all optimizers' moments."""
    known = filter(None, (*OPTIMIZERS.values(), optimizer))
    slots = {re.escape(slot.suffix) for each in known for slot in each.slots.values()}
    return rf"^({'|'.join((STEP_NAME, *COUNTERS))})$|^loss_scale|/({'|'.join(slots)})$"


def weight_names(arrays: CheckpointArrays) -> list[str]:
    """Returns the names of a checkpoint's arrays, without the training's moments and counters."""
    of_training = re.compile(_training_names())
    return [name for name in arrays.shapes if not of_training.search(name)]


def _ignored_names(variables, heads, optimizer):
    """Returns the pattern of the names that training and other models add to checkpoints."""
    patterns = [_training_names(optimizer), TASK_HEAD_NAMES, f"^{REPLACED_TOKENS_NAMES}"]
    patterns += [f"^{name}" for name in heads]
    if not any(re.search(HEAD_NAMES, name) for name in variables):
        patterns.append(HEAD_NAMES)
    return re.compile("|".join(patterns))


def load_google_checkpoint(
    model: Any, checkpoint_prefix: str, allow_missing: Sequence[str] = (), *, optimizer: Any = None
) -> LoadReport:
    """Sets a model's weights from a checkpoint by Google or this project.

    Args:
        model: an encoder, such as a BertModel or an AlbertModel, or a model around one. A bare
            encoder ignores the heads of any objective in the file.
        checkpoint_prefix: for example "uncased_L-12_H-768_A-12/bert_model.ckpt".
        allow_missing, optimizer: as in `load_arrays`.

    Raises:
        InputError: no such checkpoint, or as in `load_arrays`.
    """
    tables = [name for name in google_variables(model) if name.endswith(TABLE)]
    stems = [name.removesuffix(TABLE) for name in tables]
    arrays = google_arrays(checkpoint_prefix, stems)
    if stems and not hasattr(model, "encoder"):  # any name without a stem belongs to some head
        heads = rf"(?!{'|'.join(map(re.escape, stems))})"
        arrays = dataclasses.replace(arrays, heads=(heads,))
    return load_arrays(model, arrays, allow_missing, optimizer=optimizer)


def load_arrays(
    model: Any,
    arrays: CheckpointArrays,
    allow_missing: Sequence[str] = (),
    *,
    optimizer: DecayOptimizer | None = None,
) -> LoadReport:
    """Sets the weights of an encoder, or of a model around one, from arrays.

    Args:
        allow_missing: prefixes of Google's names for variables that the arrays may lack, for
            example ("cls/",) for a checkpoint without the pre-training heads.
        optimizer: an optimizer whose slots are ignored, like the slots of `OPTIMIZERS`.

    Raises:
        InputError: variables are missing, unexpected or have a different shape (one message lists
            up to `SHOWN_PROBLEMS` of them, before any weight is changed), or a prefix in
            `allow_missing` matches no name.
    """
    shapes, variables = arrays.shapes, google_variables(model)
    for prefix in allow_missing:
        if not any(name.startswith(prefix) for name in variables):
            raise InputError(
                "allow_missing must be prefixes of variable names. Received: "
                f"{prefix!r}, but the names are {', '.join(list(variables)[-2:])}, ..."
            )
    loaded = [name for name in variables if name in shapes]
    missing = [name for name in variables if name not in shapes]
    excused = {*part_names(model, *arrays.optional)}
    needed = [n for n in missing if n not in excused and not n.startswith(tuple(allow_missing))]
    others = [name for name in sorted(shapes) if name not in variables]
    lacks_head = any(re.search(TASK_HEAD_NAMES, name) for name in needed)
    heads = () if lacks_head else arrays.heads  # the message shows what is in the head's place
    is_ignored = _ignored_names(variables, heads, optimizer).search
    unused = [name for name in others if not is_ignored(name)]
    problems = _problems(variables, shapes, needed, loaded, unused)
    if problems:
        more = len(problems) - SHOWN_PROBLEMS
        # An optimizer is given by a training that resumes, which may lack nothing.
        begins = optimizer is None and len(problems) == len(needed)
        anew = _begin_anew(model, needed, loaded) if begins else ""
        raise InputError(
            f"the checkpoint {arrays.source} must fit the model{anew}. Received: "
            + "; ".join(problems[:SHOWN_PROBLEMS])
            + (f"; and {more} more" if more > 0 else "")
        )
    _warn_of_another_network(model, arrays)
    for name in loaded:
        variables[name].assign(arrays.read(name))
    return LoadReport(arrays.source, tuple(loaded), tuple(missing), (*others, *arrays.ignored))


def _problems(variables, shapes, needed, loaded, unused):
    """Describes each variable that is missing, unexpected or has a different shape."""
    if needed and not loaded:
        shown = ", ".join(sorted(shapes)[:3]) or "nothing"
        return [f"none of the {len(needed)} variables, such as {needed[0]}, but {shown}, ..."]
    problems = [f"- {name}: missing" for name in needed]
    # Only for the shown names, as a search for all of them takes seconds.
    for i, name in enumerate(needed[:SHOWN_PROBLEMS]):
        if near := difflib.get_close_matches(name, unused, 1, 0.8):
            problems[i] += f" (the file has {near[0]})"
    problems += [f"+ {name} {shapes[name]}: not part of the model" for name in unused]
    for name in loaded:
        if tuple(shapes[name]) != tuple(variables[name].shape):
            own = list(variables[name].shape)
            problems.append(f"! {name}: the model has {own}, the file {shapes[name]}")
    return problems


def _begin_anew(model, needed, loaded):
    """Returns a hint for the message if only pre-training heads are missing; "" otherwise."""
    of_encoder = google_variables(getattr(model, "encoder", model))
    if any(name in of_encoder or re.search(TASK_HEAD_NAMES, name) for name in needed):
        return ""
    heads = set()
    for name in needed:
        ends = [i + 1 for i, letter in enumerate(name) if letter == "/"]
        free = [name[:end] for end in ends if not any(n.startswith(name[:end]) for n in loaded)]
        heads.add(free[0] if free else name)
    return f" (run_pretraining --allow_missing={','.join(sorted(heads))} begins new heads)"


def _warn_of_another_network(model, arrays):
    """Warns if the weights' own configuration differs in fields that no shape reveals."""
    config = getattr(model, "encoder", model).config
    for field in unseen_differences(config, arrays.config or config):
        mine, theirs = (getattr(c, field) for c in (config, arrays.config))
        warnings.warn(
            f"{arrays.source} was trained with {field}={theirs}, but the model has "
            f"{field}={mine}: its outputs will differ (take the configuration beside the file)",
            stacklevel=3,
        )


def write_arrays(prefix: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays to a checkpoint under a temporary name, reads it back and renames it.

    `prefix` is the final name without ".index". If writing fails (OSError), no file has that name.
    """
    temporary = f"{prefix}.tmp-{os.getpid()}"
    names = sorted(arrays)
    try:
        with tf.device("CPU:0"):  # avoids a GPU's memory
            tf.raw_ops.SaveV2(
                prefix=temporary,
                tensor_names=names,
                shape_and_slices=[""] * len(names),
                tensors=[arrays[name] for name in names],
            )
        open(f"{temporary}.meta", "wb").close()
        reader = _open(temporary)
        for name in names:
            # Reading checks the stored checksum of every array.
            if not np.array_equal(reader.get_tensor(name), arrays[name], equal_nan=True):
                raise ValueError(f"{name} on disk differs from its value in memory")
    except (OSError, *_READ_ERRORS) as error:
        remove_checkpoint(temporary)
        reason = str(error).splitlines()[0]
        raise OSError(errno.EIO, f"cannot write the checkpoint ({reason})", prefix) from None
    rename_checkpoint(temporary, prefix)


def save_google_checkpoint(model: Any, checkpoint_prefix: str) -> None:
    """Writes a model's weights under Google's names, for tools that read Google's files."""
    arrays = {name: np.asarray(v.value) for name, v in google_variables(model).items()}
    write_arrays(checkpoint_prefix, arrays)
