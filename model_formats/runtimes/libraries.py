"""Imports the optional libraries of an export, and reports their errors."""

import contextlib
import importlib
from collections.abc import Iterable, Iterator
from types import ModuleType

from bert_common.errors import InputError


def import_libraries(modules: Iterable[str], extra: str) -> list[ModuleType]:
    """Imports modules that an optional extra installs; the extra has the name of the format."""
    try:
        return [importlib.import_module(name) for name in modules]
    except ImportError as error:
        raise InputError(
            f"--format={extra} needs libraries that pip install -e '.[{extra}]' installs. "
            f"Received: {error}"
        ) from None


@contextlib.contextmanager
def report_refusals(library: str) -> Iterator[None]:
    """Turns any exception of a library into an `InputError` of one line.

    Converters and checkers raise exceptions of their own classes, with multi-line messages.
    """
    try:
        yield
    except (InputError, OSError, MemoryError):
        raise  # another --format would not help, for example if the disk is full
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise InputError(
            f"{library} must be able to convert the model: another --format may. Received: "
            f"{type(error).__name__}: {reason[:300]}"
        ) from error
