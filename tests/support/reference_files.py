"""TensorBoard's events, for the tests of the reference run."""

import numpy as np
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto

from create_pretraining_data.records.tfrecord import frame


def write_events(path, seconds):
    """Event files as TensorFlow 2 writes them: scalars every ten updates, beside a text."""
    with open(path, "wb") as file:
        for i, value in enumerate(seconds, 1):
            numbers = {"throughput/step_seconds": value, "loss/masked_lm": value * 10}
            values = []
            for tag, number in numbers.items():
                tensor = TensorProto(dtype=1, tensor_content=np.float32(number).tobytes())
                values.append(Summary.Value(tag=tag, tensor=tensor))
                values[-1].metadata.plugin_data.plugin_name = "scalars"
            tensor = TensorProto(dtype=7, string_val=[b"guesses"])
            values.append(Summary.Value(tag="guesses", tensor=tensor))
            values[-1].metadata.plugin_data.plugin_name = "text"
            event = Event(step=10 * i, summary=Summary(value=values))
            file.write(frame(event.SerializeToString()))
