"""Tells how many cores this process may use."""

import os


def available_cores() -> int:
    """The cores that are left to this process, or, where the system does not tell, all of them."""
    if hasattr(os, "sched_getaffinity"):  # Linux alone
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
