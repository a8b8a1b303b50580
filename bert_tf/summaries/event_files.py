"""Rewrites TensorBoard's event files, so that the curves of a resumed run do not overlap."""

import glob
import os
from collections.abc import Callable

import tensorflow as tf
from google.protobuf.message import DecodeError

from create_pretraining_data.records.tfrecord import find_frames

# The TensorBoard run of an evaluation's curves, next to the training's and with the same tags.
EVALUATION_RUN = "eval"


def event_files(folder: str) -> list[str]:
    """Returns the paths of a folder's event files, oldest first."""
    return sorted(glob.glob(os.path.join(glob.escape(folder), "events.out.tfevents.*")))


def drop_later_events(directory: str, step: int) -> None:
    """Removes the events of a run and its evaluations after `step`, which a resumed run repeats."""
    for folder in (directory, os.path.join(directory, EVALUATION_RUN)):
        rewrite_events(folder, lambda earlier: earlier <= step)


def rewrite_events(folder: str, keeps: Callable[[int], bool]) -> None:
    """Removes summaries of steps for which `keeps` is False from the event files of an ended run.

    Also removes the truncated end of a file whose run was killed and damaged parts, which
    TensorBoard does not read beyond.
    """
    temporary = os.path.join(folder, ".events.tmp")  # TensorBoard would read atomic_write's names
    for path in event_files(folder):
        with open(path, "rb") as file:
            content = file.read()
        kept = []
        for start, end, intact in find_frames(content):
            event = _event(content[start:end]) if intact else None
            if event and (event.WhichOneof("what") != "summary" or keeps(event.step)):
                kept.append(content[start:end])
        if sum(map(len, kept)) < len(content):
            with open(temporary, "wb") as file:
                file.writelines(kept)
            os.replace(temporary, path)


def _event(frame):
    """Parses the event in a TFRecord; None if it holds something else."""
    try:
        return tf.compat.v1.Event.FromString(frame[12:-4])
    except DecodeError:
        return None
