"""Locks the output folder of a training run."""

import contextlib
import os
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Self

from bert_common.errors import InputError
from bert_common.file_lock import locked
from bert_tf.checkpoint_files import remove_unfinished
from bert_tf.training.cluster import Cluster

# A hidden file, as it is not a result of the training.
LOCK_FILE = ".training.lock"


class TrainingFolder:
    """A context that creates and locks a folder; raises an InputError if it is locked already.

    On a file system without locks, it only warns. Removes unfinished checkpoints of a killed
    training, which no process without the lock may do, as a training may be running.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = contextlib.ExitStack()

    def __enter__(self) -> Self:
        os.makedirs(self.path, exist_ok=True)
        try:
            holder = self._lock.enter_context(locked(os.path.join(self.path, LOCK_FILE)))
        except OSError as error:
            warnings.warn(
                f"{self.path} cannot be locked ({error.strerror}): take care that no other "
                "training writes to it",
                stacklevel=2,
            )
            holder = None
        if holder is not None:
            self._lock.close()
            raise InputError(
                "--output_dir must be a directory that no other training writes to. Received: "
                f"{self.path}, locked by {holder}"
            )
        remove_unfinished(self.path)
        return self

    def __exit__(self, *_: Any) -> None:
        self._lock.close()

    def recreate(self) -> None:
        """Recreates and locks the folder after it was removed or renamed.

        Raises an InputError if another training has started in a folder of that name.
        """
        self._lock.close()
        self.__enter__()


@contextlib.contextmanager
def training_folders(
    paths: Iterable[str], cluster: Cluster | None
) -> Iterator[tuple[dict[str, TrainingFolder], str | None]]:
    """Locks the folders that a training writes to, in the worker that writes.

    Yields the folders by path, empty in the other workers, and the reason why this worker must not
    train, or None. Pass the reason to `raise_together`, because the workers wait for each other. A
    single worker raises its InputError at once.
    """
    folders: dict[str, TrainingFolder] = {}
    refusal_reason = None
    with contextlib.ExitStack() as locks:
        try:
            if cluster is None or cluster.is_chief:
                for path in paths:
                    folders[path] = locks.enter_context(TrainingFolder(path))
        except InputError as error:
            if cluster is None or len(cluster.workers) == 1:
                raise
            refusal_reason = str(error)
        yield folders, refusal_reason
