"""Reads a training's TensorBoard curves without TensorFlow."""

import os
from typing import NamedTuple

from create_pretraining_data.records.tfrecord import find_frames


class Curve(NamedTuple):
    """The values of a scalar over the updates of a training."""

    steps: list[int]
    values: list[float]


def read_scalars(folder: str) -> dict[str, Curve]:
    """Reads the scalars in a folder's event files, tag -> `Curve`; empty if there are no files."""
    from tensorboard.compat.proto.event_pb2 import Event

    points: dict[str, dict[int, float]] = {}
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for name in sorted(name for name in names if name.startswith("events.out.tfevents.")):
        with open(os.path.join(folder, name), "rb") as file:
            content = file.read()
        for start, end, intact in find_frames(content):
            event = Event.FromString(content[start + 12 : end - 4]) if intact else Event()
            for value in event.summary.value:
                number = _number(value)
                if number is not None:
                    points.setdefault(value.tag, {})[event.step] = number
    return {
        tag: Curve(sorted(of_steps), [of_steps[step] for step in sorted(of_steps)])
        for tag, of_steps in points.items()
    }


def _number(value):
    """Returns the number in an event's value; None for a text, an image or a histogram."""
    from tensorboard.util.tensor_util import make_ndarray

    if value.HasField("simple_value"):
        return value.simple_value
    if value.metadata.plugin_data.plugin_name != "scalars":
        return None
    return float(make_ndarray(value.tensor))
