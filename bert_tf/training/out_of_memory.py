"""Turns the error of memory or a disk that is full into one line that says what to change."""

import contextlib
import errno
import os

import tensorflow as tf

from bert_common.errors import InputError

# What TensorFlow reports under the errors of memory that ran out and of a file's end.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

# Where no batch is to blame: for weights, moments, what was read.
MEMORY_REMEDIES = ("a smaller model", "ending other programs that use this device's memory")


@contextlib.contextmanager
def explain_exhaustion(remedies, received, folder=None):
    """Around what may need more memory, or more room on the disk, than there is.

    Args:
        remedies: what may mend it where memory ran out, the cheapest first.
        received: the flags that decide how much is needed: name -> value.
        folder: where files are written, if any are.

    Raises:
        InputError: memory ran out.
        OSError: a file could not be written whole.
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
            f"memory ran out, which {', '.join(remedies)} may mend. Received: {given}{reason}"
        ) from None
