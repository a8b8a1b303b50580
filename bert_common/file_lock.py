"""Locks files for as long as the locking process lives."""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], wait: bool = False) -> Iterator[str | None]:
    """Holds the lock of a file; the system releases it when the process ends, however it ends.

    On a file system shared by several machines, the lock holds on all of them if the file system
    supports such locks (NFS does).

    Args:
        path: the file; it is created if missing, and is not removed.
        wait: whether to wait until the current holder releases the lock.

    Yields:
        None if this process holds the lock; otherwise a description of the holder, as read from
        the file: "process 4711 on node3, since 2026-01-31 12:00:00".

    Raises:
        OSError: the file cannot be opened, or the file system has no locks.
    """
    # Opened for appending: until the lock is ours, the text in the file belongs to its holder.
    with open(path, "a+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.seek(0)
            yield file.read().decode("utf-8", "replace").strip() or "another process"
            return
        with contextlib.suppress(OSError):  # a full disk: the lock holds without the text
            file.truncate(0)
            since = time.strftime("%Y-%m-%d %H:%M:%S")
            text = f"process {os.getpid()} on {socket.gethostname()}, since {since}\n"
            file.write(text.encode())
        yield None
