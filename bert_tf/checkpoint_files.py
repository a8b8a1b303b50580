"""Manages the checkpoint files of a run's directory, without TensorFlow."""

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

# A checkpoint's files in the order in which they get their names: only the index makes it one.
# .meta, where TensorFlow 1 kept the graph, is empty, but google-research/albert's programs copy it
# and fail where it is missing.
SUFFIXES = (".data-00000-of-00001", ".meta", ".index")

# The prefix of the names of checkpoints that could not be read.
_ASIDE = "unreadable-"

# The folder in the run's directory with the checkpoint that was best in an evaluation.
BEST_FOLDER = "best"

# The file with the results of the last evaluation; in `BEST_FOLDER`, of its checkpoint.
RESULTS_FILE = "eval_results.txt"


def checkpoint_path(directory: str | os.PathLike[str], step: int) -> str:
    """The name of the checkpoint after `step` updates, as google-research/bert names it."""
    return os.path.join(directory, f"model.ckpt-{step}")


def exists(prefix: str) -> bool:
    """Whether there is a checkpoint of that name."""
    return os.path.isfile(f"{prefix}.index")


def list_checkpoints(directory: str | os.PathLike[str]) -> list[int]:
    """The steps of all checkpoints in a directory, oldest first."""
    indexes = glob.glob(os.path.join(glob.escape(str(directory)), "model.ckpt-*.index"))
    steps = [re.search(r"model\.ckpt-(\d+)\.index$", path) for path in indexes]
    return sorted(int(match.group(1)) for match in steps if match)


def step_of(prefix: str | os.PathLike[str]) -> int:
    """The step in a checkpoint's name; 0 where it has none, as in "model.ckpt-best"."""
    match = re.search(r"model\.ckpt-(\d+)$", str(prefix))
    return int(match.group(1)) if match else 0


def latest_checkpoint(directory: str | os.PathLike[str]) -> str | None:
    """The newest checkpoint's name, or None; unlike TensorFlow's, needs no state file."""
    steps = list_checkpoints(directory)
    return checkpoint_path(directory, steps[-1]) if steps else None


def best_checkpoint(folder: str) -> str | None:
    """The checkpoint of a folder `BEST_FOLDER` that its results are of, or None.

    A run that is killed while it replaces the best checkpoint leaves both, and the other one may
    have the higher step: of a run that was resumed from before it.
    """
    path = os.path.join(folder, RESULTS_FILE)
    if os.path.isfile(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            step = re.search(r"^global_step = (\d+)", file.read(), re.MULTILINE)
        if step and exists(prefix := checkpoint_path(folder, int(step[1]))):
            return prefix
    return latest_checkpoint(folder)


def list_other_checkpoints(directory: str | os.PathLike[str]) -> list[str]:
    """The checkpoints whose names are not this project's, sorted."""
    indexes = glob.glob(os.path.join(glob.escape(str(directory)), "*.index"))
    ours = re.compile(rf"{re.escape(EXPORTED_NAME)}(-\d+)?|{_ASIDE}.*|.*\.tmp-\d+")
    prefixes = [path.removesuffix(".index") for path in sorted(indexes)]
    return [path for path in prefixes if not ours.fullmatch(os.path.basename(path))]


def remove_checkpoint(prefix: str) -> None:
    """Removes the files of a checkpoint, the index first; a missing file is no error."""
    for path in _files(prefix):
        os.remove(path)


def set_aside(prefix: str) -> None:
    """Renames a checkpoint that cannot be read, so that nothing finds it."""
    directory, name = os.path.split(prefix)
    for path in _files(prefix):
        suffix = path.removeprefix(prefix)
        os.replace(path, os.path.join(directory, f"{_ASIDE}{name}{suffix}"))


def _files(prefix):
    """The files of a checkpoint that exist, the index first."""
    data = glob.glob(f"{glob.escape(prefix)}.data-*")  # large models of others have several
    paths = (f"{prefix}.index", *data, f"{prefix}.meta")
    return [path for path in paths if os.path.exists(path)]


def is_pattern(path: str | os.PathLike[str]) -> bool:
    """Whether TensorFlow would take a path for a pattern where it reads variables."""
    return "[" in str(path) or "\\" in str(path)


@functools.cache
def link_to(folder: str) -> str:
    """A link to a folder, by a plain name; it stays as long as this process, which reads late."""
    link = os.path.join(_place_of_links(), "link")
    os.symlink(folder, link)
    return link


@functools.cache
def link_to_checkpoint(prefix: str) -> str:
    """The prefix of links to a checkpoint's files, as `link_to`."""
    link = os.path.join(_place_of_links(), "link")
    for path in _files(prefix):
        os.symlink(path, link + path.removeprefix(prefix))
    return link


def _place_of_links():
    place = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return place


def remove_unfinished(directory: str | os.PathLike[str]) -> None:
    """Removes the temporary files of runs that were killed while they wrote a checkpoint."""
    for path in glob.glob(os.path.join(glob.escape(str(directory)), "model.ckpt*.tmp-*")):
        os.remove(path)


def keep_newest(directory: str, count: int, every: int = 0) -> None:
    """Removes all but the newest checkpoints, and lists these with `note_checkpoints`.

    Keeps `count` of them (0: all), and does not count multiples of `every`, which stay too.
    """
    if count:
        counted = [step for step in list_checkpoints(directory) if not every or step % every]
        for step in counted[:-count]:
            remove_checkpoint(checkpoint_path(directory, step))
    note_checkpoints(directory)


def note_checkpoints(directory: str) -> None:
    """Writes the file "checkpoint", which TensorFlow's and Google's programs read."""
    names = [f"model.ckpt-{step}" for step in list_checkpoints(directory)]
    lines = [f'model_checkpoint_path: "{names[-1]}"\n']
    lines += [f'all_model_checkpoint_paths: "{name}"\n' for name in names]
    with atomic_write(os.path.join(directory, "checkpoint")) as file:
        file.write("".join(lines).encode("utf-8"))


def rename_checkpoint(temporary: str, prefix: str) -> None:
    """Gives a finished checkpoint its name, so that it survives a loss of power.

    The index comes last: without it the other files are no checkpoint.
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
