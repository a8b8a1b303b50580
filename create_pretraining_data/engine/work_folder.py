"""The folder of a run that is not finished: its manifest, its locks, its end."""

import contextlib
import glob
import itertools
import json
import os
import shutil

from bert_common import file_lock
from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.json_text import parse_json

MANIFEST = "manifest.json"
LOCK = ".lock"


def begin(folder, manifest, may_clear):
    """Writes the manifest, or sees that the folder was begun with the same settings.

    Whatever lies in a folder without a manifest is what a removed run has left, and goes.

    Args:
        folder: the work folder; this process has a lock of it.
        manifest: a flat dict that JSON can hold; what must be the same to go on.
        may_clear: whether a folder of other settings in which no chunk is finished may be made
            anew (not where other tasks are at work in it).

    Raises:
        InputError: it was begun with other settings; names what differs, and what to delete.
    """
    # Two tasks that start at once must not take each other's files for left-over ones.
    with locked(folder, "begin", wait=True):
        found = read_manifest(folder)
        differing = [] if found is None else _differences(found, manifest)
        if differing and not (may_clear and not has_chunks(folder)):
            raise InputError(
                f"{folder} must hold the begun work of the same settings. Received: "
                f"{'; '.join(differing)}; delete that folder to start anew"
            )
        if differing or found is None:
            _remove_work(folder)
            write_json(os.path.join(folder, MANIFEST), manifest)


def read_manifest(folder):
    """The manifest of a run that has not removed its folder yet; None if there is none."""
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            return parse_json(file.read())
    except FileNotFoundError:
        return None
    except ValueError:  # lost power
        return {}


def has_chunks(folder):
    """Whether a chunk was finished."""
    names = glob.glob(os.path.join(glob.escape(folder), "chunk-*"))
    return not all(name.endswith(".partial") for name in names)


def _differences(found, manifest):
    """What differs, as phrases."""
    wanted = json.loads(json.dumps(manifest))  # tuples become lists
    names = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
    phrases = [_difference(name, found.get(name), wanted.get(name)) for name in names[:_MOST_SHOWN]]
    if len(names) > _MOST_SHOWN:
        phrases.append(f"{len(names) - _MOST_SHOWN} more")
    return phrases


# Of what differs; a message is one line.
_MOST_SHOWN = 3


def _difference(name, found, wanted):
    if isinstance(found, list) and isinstance(wanted, list):  # the first that differs
        pairs = list(itertools.zip_longest(found, wanted))
        number = next(k for k, (old, new) in enumerate(pairs) if old != new)
        name, (found, wanted) = f"number {number + 1} of the {name}", pairs[number]
    return f"{name} was {_shown(found)}, is now {_shown(wanted)}"


def _shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:38]}...{text[-39:]}"  # a path's name is its end


@contextlib.contextmanager
def locked(folder, name, wait=False):
    """Holds a lock of the folder, which ends with the process, however that ends.

    Args:
        folder: the work folder.
        name: of the lock.
        wait: whether to wait until whoever holds it lets it go.

    Yields:
        Whether this process has the lock; if not, it is held elsewhere, or the folder is gone.

    Raises:
        InputError: the file system has no locks.
    """
    with contextlib.ExitStack() as stack:
        try:
            path = os.path.join(folder, name + LOCK)
            is_free = stack.enter_context(file_lock.locked(path, wait)) is None
        except FileNotFoundError:
            is_free = False
        except OSError as error:
            raise InputError(
                f"{folder} must be on a file system with file locks. Received: {error.strerror}"
            ) from None
        yield is_free


def clear(folder):
    """Removes the folder with everything in it.

    The locks are the last to go: a start while they are held is refused.
    """
    with contextlib.suppress(FileNotFoundError):  # another task was faster
        _remove_work(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _remove_work(folder):
    """Removes all but the locks, the manifest last: a kill leaves no file that has none."""
    names = [name for name in os.listdir(folder) if not name.endswith(LOCK)]
    # Network file systems keep removed files that are open under such a name.
    names = [name for name in names if not name.startswith(".nfs")]
    for name in sorted(names, key=MANIFEST.__eq__):
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, name))
