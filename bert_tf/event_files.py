"""Rewrites TensorBoard's event files, so that curves go on after a resume without an overlap."""

import glob
import os

import tensorflow as tf
from google.protobuf.message import DecodeError

# Where an evaluation's curves go: a run of its own beside the training's, with the same tags.
EVALUATION_RUN = "eval"


def event_files(folder):
    """The paths of a folder's event files, the oldest first."""
    return sorted(glob.glob(os.path.join(glob.escape(folder), "events.out.tfevents.*")))


def drop_later_events(directory, step):
    """Removes what a run wrote after `step`, which the one that goes on from there will repeat.

    Args:
        directory: where the run's event files are, and in "eval" those of its evaluations.
        step: the last one that stays.
    """
    for folder in (directory, os.path.join(directory, EVALUATION_RUN)):
        rewrite_events(folder, lambda earlier: earlier <= step)


def rewrite_events(folder, keeps):
    """Leaves events out of the event files of a run that is over.

    The end of a file that was cut when its run was killed is left out as well. A file with
    nothing to leave out is not touched.

    Args:
        folder: where the event files are.
        keeps: step -> whether scalars and texts of that step stay; other events always do.
    """
    temporary = os.path.join(folder, ".events.tmp")  # a name that TensorBoard does not look for
    for path in event_files(folder):
        kept = [
            frame
            for frame, event in _whole_events(path)
            if event.WhichOneof("what") != "summary" or keeps(event.step)
        ]
        if sum(map(len, kept)) < os.path.getsize(path):
            with open(temporary, "wb") as file:
                file.writelines(kept)
            os.replace(temporary, path)


def _whole_events(path):
    """The events of a file up to where it was cut, each after its bytes in the file.

    Around an event are, as around every TFRecord, its length (8 bytes), a checksum of that (4)
    and a checksum of the event (4).
    """
    with open(path, "rb") as file:
        content = file.read()
    start = 0
    while start < len(content):
        length = int.from_bytes(content[start : start + 8], "little")
        frame = content[start : start + length + 16]
        # A loss of power may leave zeros at the end; no event is empty.
        if length == 0 or len(frame) < length + 16:
            return
        try:
            event = tf.compat.v1.Event.FromString(frame[12:-4])
        except DecodeError:
            return
        yield frame, event
        start += len(frame)
