"""The flags that choose between GPUs and the CPU, and the start of TensorFlow on them."""

import dataclasses
import os

from bert_common.import_tensorflow import import_tensorflow
from run_scripts.flags.declaration import flag


@dataclasses.dataclass(frozen=True)
class DeviceFlags:
    """The flags of every program that computes with a model."""

    device: str = flag(
        "auto",
        "auto: the GPUs; the program ends where the machine has one that TensorFlow cannot use. "
        "cpu: no GPU.",
        choices=("auto", "cpu"),
    )
    ignore_compute_capability: bool = flag(
        False, "Try a GPU that this TensorFlow has no code for, which may end the process."
    )


def start_tensorflow(flags):
    """Imports TensorFlow, quietly, with the GPUs that the `DeviceFlags` allow.

    Raises:
        InputError: a GPU that TensorFlow cannot use.
    """
    if flags.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # hidden in time: importing lists the devices
    import_tensorflow()
    from bert_tf.training.gpus import check_gpus

    check_gpus(flags.ignore_compute_capability)
