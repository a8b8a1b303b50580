"""Locks that end with the process that holds them."""

import contextlib
import fcntl
import os
import socket
import time


@contextlib.contextmanager
def locked(path, wait=False):
    """Holds the lock of a file, which ends with the process, however that ends.

    On a file system that several machines share the lock holds for all of them, as far as that
    file system has such locks (NFS does).

    Args:
        path: the file; it is made where it is missing, and stays.
        wait: whether to wait until whoever holds the lock lets it go.

    Yields:
        None if this process has the lock; else who has it, as far as the file tells: "process
        4711 on node3, since 2026-01-31 12:00:00".

    Raises:
        OSError: the file cannot be opened, or the file system has no locks.
    """
    # For appending: until the lock is ours the text in it is its holder's.
    with open(path, "a+b", buffering=0) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            file.seek(0)
            yield file.read().decode("utf-8", "replace").strip() or "another process"
            return
        with contextlib.suppress(OSError):  # a full disk: the lock holds without the text
            file.truncate(0)
            file.write(_this_process().encode())
        yield None


def _this_process():
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {socket.gethostname()}, since {since}\n"
