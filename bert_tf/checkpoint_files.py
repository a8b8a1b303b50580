"""Manages the checkpoint files in a run's directory, without importing TensorFlow."""

import atexit
import functools
import glob
import os
import re
import shutil
import tempfile

from bert_common.atomic_write import atomic_write

# The name of an exported checkpoint, which has no step.
EXPORTED_NAME = "model.ckpt"

# The best checkpoint of google-research/albert's programs, and the name of its released ones.
GOOGLE_BEST = f"{EXPORTED_NAME}-best"

# A checkpoint's files in the order in which they get their final names; the index comes last, as it
# makes the files a checkpoint. .meta, where TensorFlow 1 kept the graph, is empty, but
# google-research/albert's programs copy it and fail if it is missing.
SUFFIXES = (".data-00000-of-00001", ".meta", ".index")

# The name prefix of checkpoints that could not be read.
_ASIDE = "unreadable-"

# The folder in the run's directory for the checkpoint with the best evaluation.
BEST_FOLDER = "best"

# The file with the results of the last evaluation or, in `BEST_FOLDER`, of its checkpoint.
RESULTS_FILE = "eval_results.txt"


def checkpoint_path(directory: str | os.PathLike[str], step: int) -> str:
    """Returns the path of the checkpoint after `step` updates, named as in google-research/bert."""
    return os.path.join(directory, f"model.ckpt-{step}")


def exists(prefix: str) -> bool:
    """Returns True if a checkpoint with this prefix exists."""
    return os.path.isfile(f"{prefix}.index")


def list_checkpoints(directory: str | os.PathLike[str]) -> list[int]:
    """Returns the steps of all checkpoints in a directory, oldest first."""
    indexes = glob.glob(os.path.join(glob.escape(str(directory)), "model.ckpt-*.index"))
    steps = [re.search(r"model\.ckpt-(\d+)\.index$", path) for path in indexes]
    return sorted(int(match.group(1)) for match in steps if match)


def step_of(prefix: str | os.PathLike[str]) -> int:
    """Returns the step in a checkpoint's name; 0 if there is none, as in "model.ckpt-best"."""
    match = re.search(r"model\.ckpt-(\d+)$", str(prefix))
    return int(match.group(1)) if match else 0


def latest_checkpoint(directory: str | os.PathLike[str]) -> str | None:
    """Returns the newest checkpoint's path or None; unlike TensorFlow's, needs no state file."""
    steps = list_checkpoints(directory)
    return checkpoint_path(directory, steps[-1]) if steps else None


def best_checkpoint(folder: str) -> str | None:
    """Returns the checkpoint in a `BEST_FOLDER` that its results belong to, or None.

    A run that is killed while it replaces the best checkpoint leaves two, and the outdated one may
    have the higher step if the run was resumed from an earlier step.
    """
    path = os.path.join(folder, RESULTS_FILE)
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            step = re.search(r"^global_step = (\d+)", file.read(), re.MULTILINE)
        if step and exists(prefix := checkpoint_path(folder, int(step[1]))):
            return prefix
    return latest_checkpoint(folder)


def chosen_checkpoint(directory: str) -> str | None:
    """Returns the checkpoint that programs take from a run's directory before newer ones, or None.

    An evaluation of this project chose it, or else one of google-research/albert's programs.
    """
    google = os.path.join(directory, GOOGLE_BEST)
    best = best_checkpoint(os.path.join(directory, BEST_FOLDER))
    return next((prefix for prefix in (best, google) if prefix and exists(prefix)), None)


def list_other_checkpoints(directory: str | os.PathLike[str]) -> list[str]:
    """Returns the checkpoints whose names are not this project's, sorted."""
    indexes = glob.glob(os.path.join(glob.escape(str(directory)), "*.index"))
    ours = re.compile(rf"{re.escape(EXPORTED_NAME)}(-\d+)?|{_ASIDE}.*|.*\.tmp-\d+")
    prefixes = [path.removesuffix(".index") for path in sorted(indexes)]
    return [path for path in prefixes if not ours.fullmatch(os.path.basename(path))]


def remove_checkpoint(prefix: str) -> None:
    """Removes the files of a checkpoint, the index first; missing files are ignored."""
    for path in _files(prefix):
        os.remove(path)


def set_aside(prefix: str) -> None:
    """Renames an unreadable checkpoint, so that no program finds it."""
    directory, name = os.path.split(prefix)
    for path in _files(prefix):
        suffix = path.removeprefix(prefix)
        os.replace(path, os.path.join(directory, f"{_ASIDE}{name}{suffix}"))


def _files(prefix):
    """Returns the existing files of a checkpoint, the index first."""
    data = glob.glob(f"{glob.escape(prefix)}.data-*")  # other projects' large models have several
    paths = (f"{prefix}.index", *data, f"{prefix}.meta")
    return [path for path in paths if os.path.exists(path)]


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Returns True if TensorFlow would interpret a path as a pattern when it reads variables."""
    return "[" in str(path) or "\\" in str(path)


@functools.cache
def link_to(folder: str) -> str:
    """Returns a plain-named link to a folder, kept until exit because files are read late."""
    link = os.path.join(_place_of_links(), "link")
    os.symlink(folder, link)
    return link


@functools.cache
def link_to_checkpoint(prefix: str) -> str:
    """Creates links to a checkpoint's files, like `link_to`, and returns their prefix."""
    link = os.path.join(_place_of_links(), "link")
    for path in _files(prefix):
        os.symlink(path, link + path.removeprefix(prefix))
    return link


def _place_of_links():
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def remove_unfinished(directory: str | os.PathLike[str]) -> None:
    """Removes temporary files of runs that were killed while writing a checkpoint."""
    for path in glob.glob(os.path.join(glob.escape(str(directory)), "model.ckpt*.tmp-*")):
        os.remove(path)


def keep_newest(directory: str, count: int, every: int = 0) -> None:
    """Removes all but the newest checkpoints, and lists the rest with `note_checkpoints`.

    Keeps the newest `count` (0: all). Multiples of `every` are kept too, without being counted.
    """
    if count:
        counted = [step for step in list_checkpoints(directory) if not every or step % every]
        for step in counted[:-count]:
            remove_checkpoint(checkpoint_path(directory, step))
    note_checkpoints(directory)


def note_checkpoints(directory: str) -> None:
    """Writes the file "checkpoint" for TensorFlow's and Google's programs."""
    names = [f"model.ckpt-{step}" for step in list_checkpoints(directory)]
    lines = [f'model_checkpoint_path: "{names[-1]}"\n']
    lines += [f'all_model_checkpoint_paths: "{name}"\n' for name in names]
    with atomic_write(os.path.join(directory, "checkpoint")) as file:
        file.write("".join(lines).encode("utf-8"))


def rename_checkpoint(temporary: str, prefix: str) -> None:
    """Gives a finished checkpoint its final name, in a way that survives a power loss.

    The index comes last, because the other files alone are not a checkpoint.
    """
    for suffix in SUFFIXES:
        _flush_to_disk(f"{temporary}{suffix}")
        os.replace(f"{temporary}{suffix}", f"{prefix}{suffix}")
        _flush_to_disk(os.path.dirname(prefix) or ".")


def _flush_to_disk(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
