"""Locks the output folder of a training run."""

import contextlib
import os
import warnings
from collections.abc import Iterator

from bert_common.errors import InputError
from bert_common.file_lock import locked
from bert_tf.checkpoint_files import remove_unfinished

# A hidden file, as it is not a result of the training.
LOCK_FILE = ".training.lock"


@contextlib.contextmanager
def lock_folder(path: str | os.PathLike[str]) -> Iterator[None]:
    """Creates and locks a folder; raises an InputError if it is locked already.

    On a file system without locks, it only warns. Removes unfinished checkpoints of a killed
    training, which no process without the lock may do, as a training may be running.
    """
    os.makedirs(path, exist_ok=True)
    with contextlib.ExitStack() as lock:
        try:
            holder = lock.enter_context(locked(os.path.join(path, LOCK_FILE)))
        except OSError as error:
            warnings.warn(
                f"{path} cannot be locked ({error.strerror}): take care that no other "
                "training writes to it",
                stacklevel=2,
            )
            holder = None
        if holder is not None:
            raise InputError(
                "--output_dir must be a directory that no other training writes to. Received: "
                f"{path}, locked by {holder}"
            )
        remove_unfinished(path)
        yield
