"""Declares the flags that choose devices, and starts TensorFlow on them."""

import dataclasses
import os
from collections.abc import Callable

from bert_common.import_tensorflow import import_tensorflow
from run_scripts.flags import groups


@dataclasses.dataclass(frozen=True)
class DeviceFlags:
    """The flags of every program that computes with a model."""

    device: str = groups.DEVICES.flag(
        "auto",
        "The devices to use. auto: the machine's GPUs (an error if TensorFlow cannot use them), "
        "or the CPU if there are none. cpu: only the CPU.",
        choices=("auto", "cpu"),
    )
    ignore_compute_capability: bool = groups.DEVICES.flag(
        False, "Use a GPU even if this TensorFlow build does not support it. The process may crash."
    )
    num_threads: int = groups.THREADS.optional(
        "The maximum number of CPU threads for TensorFlow. Default: one per core.",
        least=1,
    )


def start_tensorflow(
    flags: DeviceFlags, compilation_cache: Callable[[bool], str | None] | None = None
) -> None:
    """Imports TensorFlow without its messages, with the GPUs that the `DeviceFlags` allow.

    Args:
        compilation_cache: maps whether there are GPUs to the folder where XLA keeps compiled
            code, or to None. None for a program that keeps nothing.
    """

    def set_flags():
        from bert_tf.training.gpus import machine_gpus
        from bert_tf.training.xla import keep_compiled

        gpus = machine_gpus()
        if compilation_cache and (folder := compilation_cache(bool(gpus))):
            keep_compiled(folder, gpus)

    if flags.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # before the import, which lists devices
    import_tensorflow(set_flags if compilation_cache else None)
    if flags.num_threads:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(flags.num_threads)
        tf.config.threading.set_inter_op_parallelism_threads(flags.num_threads)
    from bert_tf.training.gpus import check_gpus

    check_gpus(flags.ignore_compute_capability)
