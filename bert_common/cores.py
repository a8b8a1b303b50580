"""Counts the CPU cores that this process may use."""

import os


def available_cores() -> int:
    """The number of cores this process may run on; all cores where the system does not say."""
    if hasattr(os, "sched_getaffinity"):  # Linux only
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
