"""Turns errors about full memory or a full disk into a line that suggests remedies."""

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf

from bert_common.errors import InputError

# Errors of a full disk, which TensorFlow reports as memory that ran out or as the end of a file.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Remedies if the memory does not depend on the batch: weights, moments, examples in memory.
MEMORY_REMEDIES = ("a smaller model", "ending other programs that use this device's memory")


@contextlib.contextmanager
def explain_out_of_memory(
    remedies: Sequence[str], received: Mapping[str, Any], folder: str | None = None
) -> Iterator[None]:
    """Turns out-of-memory errors into an InputError, and a full disk into an OSError.

    Args:
        remedies: possible remedies for running out of memory, the cheapest first.
        received: the flags that determine the needed memory, name -> value.
        folder: the folder to which files are written, if any.
    """
    try:
        yield
    except (tf.errors.ResourceExhaustedError, tf.errors.OutOfRangeError) as error:
        reason = error.message.splitlines()[0]
        for number in DISK_ERRORS:
            if os.strerror(number) in error.message:
                raise OSError(number, f"cannot write ({reason})", folder) from None
        if isinstance(error, tf.errors.OutOfRangeError):
            raise
        given = "".join(f"{name}={value}, " for name, value in received.items())
        raise InputError(
            f"out of memory; what may help: {', '.join(remedies)}. Received: {given}{reason}"
        ) from None
