"""The folder of a run that is not finished: its manifest, its locks, its end."""

import contextlib
import fcntl
import glob
import json
import os
import shutil

from create_pretraining_data.whole_file import whole_file
from tokenization.errors import InputError

MANIFEST = "manifest.json"
LOCK = ".lock"


def begin(folder, manifest, may_clear):
    """Writes the manifest, or sees that the folder was begun with the same settings.

    Args:
        folder: the work folder; this process has its lock.
        manifest: a flat dict that JSON can hold; what must be the same to go on.
        may_clear: whether a folder of other settings in which no chunk is finished may be made
            anew (not where other tasks are at work in it).

    Raises:
        InputError: it was begun with other settings; names what differs, and what to delete.
    """
    path = os.path.join(folder, MANIFEST)
    differing = _differences(path, manifest)
    if differing and may_clear and not has_chunks(folder):
        for name in os.listdir(folder):
            if not name.endswith(LOCK):
                os.remove(os.path.join(folder, name))
        differing = []
    if differing:
        raise InputError(
            f"{folder} must hold the begun work of the same settings. Received: "
            f"{'; '.join(differing)}; delete that folder to start anew"
        )
    if not os.path.exists(path):
        write_json(path, manifest)


def is_begun(folder, manifest):
    """Whether the folder is there, of these settings."""
    path = os.path.join(folder, MANIFEST)
    return os.path.exists(path) and not _differences(path, manifest)


def has_chunks(folder):
    """Whether a chunk was finished."""
    names = glob.glob(os.path.join(glob.escape(folder), "chunk-*"))
    return not all(name.endswith(".partial") for name in names)


def _differences(path, manifest):
    """What differs, as phrases; none if there is no manifest yet."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return []
    except (ValueError, RecursionError):  # lost power
        found = {}
    wanted = json.loads(json.dumps(manifest))  # tuples become lists
    names = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
    phrases = [
        f"{name} was {_shown(found.get(name))}, is now {_shown(wanted.get(name))}"
        for name in names[:_MOST_SHOWN]
    ]
    if len(names) > _MOST_SHOWN:
        phrases.append(f"{len(names) - _MOST_SHOWN} more")
    return phrases


# Of what differs; a message is one line.
_MOST_SHOWN = 3


def _shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def write_json(path, value):
    """Writes a JSON file that is there once it is whole.

    Raises:
        InputError: it cannot be written.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


@contextlib.contextmanager
def locked(folder, name):
    """Holds a lock of the folder, which ends with the process, however that ends.

    Yields:
        Whether the lock was free; if not, it is held elsewhere, or the folder is gone.

    Raises:
        InputError: the file system has no locks.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open(os.path.join(folder, name + LOCK), "w"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, FileNotFoundError):
            yield False
            return
        except OSError as error:
            raise InputError(
                f"{folder} must be on a file system with file locks. Received: {error.strerror}"
            ) from None
        yield True


def clear(folder):
    """Removes the folder with everything in it."""
    shutil.rmtree(folder, ignore_errors=True)
