"""Rewrites TensorBoard's event files, so that the curves of a resumed run do not overlap."""

import glob
import os
import warnings
from collections.abc import Callable

import tensorflow as tf
from google.protobuf.message import DecodeError

from create_pretraining_data.records.tfrecord import find_frames

# Where an evaluation's curves go: a run beside the training's, with the same tags.
EVALUATION_RUN = "eval"


def event_files(folder: str) -> list[str]:
    """The paths of a folder's event files, the oldest first."""
    return sorted(glob.glob(os.path.join(glob.escape(folder), "events.out.tfevents.*")))


def drop_later_events(directory: str, step: int) -> None:
    """Removes what a run and its evaluations wrote after `step`; the resumed run repeats it."""
    for folder in (directory, os.path.join(directory, EVALUATION_RUN)):
        rewrite_events(folder, lambda earlier: earlier <= step)


def rewrite_events(folder: str, keeps: Callable[[int], bool]) -> None:
    """Removes scalars and texts of steps that `keeps` denies from event files of a run that ended.

    Also removes the truncated end of a file whose run was killed, and, with a warning, damaged
    parts, beyond which TensorBoard does not read; the damaged file is kept under another name.
    """
    temporary = os.path.join(folder, ".events.tmp")  # not atomic_write: TensorBoard reads its names
    for path in event_files(folder):
        with open(path, "rb") as file:
            content = file.read()
        kept, read, damaged = [], 0, 0
        for start, end, whole in find_frames(content):
            event = _event(content[start:end]) if whole else None
            damaged += start - read + (end - start if event is None else 0)
            read = end
            if event and (event.WhichOneof("what") != "summary" or keeps(event.step)):
                kept.append(content[start:end])
        if damaged:
            _keep_damaged(path, content, damaged)
        if sum(map(len, kept)) < len(content):
            with open(temporary, "wb") as file:
                file.writelines(kept)
            os.replace(temporary, path)


def _event(frame):
    """The event in a TFRecord; None if it holds something else."""
    try:
        return tf.compat.v1.Event.FromString(frame[12:-4])
    except DecodeError:
        return None


def _keep_damaged(path, content, damaged):
    """Writes a damaged file under a name that TensorBoard ignores, and warns."""
    folder, name = os.path.split(path)
    aside = os.path.join(folder, name.replace("tfevents", "damaged"))
    while os.path.exists(aside):
        aside += "~"
    with open(aside, "wb") as file:
        file.write(content)
    warnings.warn(
        f"{path} is damaged ({damaged} bytes), and TensorBoard would show nothing after that: all "
        f"other events are kept, and the damaged file is now {aside}",
        stacklevel=3,
    )
