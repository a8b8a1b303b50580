"""Measures the memory that this process and its GPUs use."""

import ctypes
import resource
import sys

import tensorflow as tf


def process_gib() -> float | None:
    """The process's resident memory in GiB; None if the system does not report it."""
    # The C library keeps memory that was freed, after compiling tens of MB for hours, which would
    # count as used.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # glibc
        trim(0)
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except OSError:  # not Linux
        return None
    return pages * resource.getpagesize() / 2**30


def process_peak_gib() -> float:
    """The most resident memory that the process has had, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)  # bytes there, KiB elsewhere


def device_gib(kind: str) -> float | None:
    """The memory of the fullest GPU in GiB, "current" or "peak"; None without a GPU."""
    devices = tf.config.list_logical_devices("GPU")
    return max(
        (tf.config.experimental.get_memory_info(d.name)[kind] / 2**30 for d in devices),
        default=None,
    )
