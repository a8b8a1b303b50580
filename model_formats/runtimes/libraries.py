"""Imports the libraries of an export, which are optional, and reports what they refuse."""

import contextlib
import importlib
from collections.abc import Iterable, Iterator
from types import ModuleType

from bert_common.errors import InputError


def import_libraries(modules: Iterable[str], extra: str) -> list[ModuleType]:
    """Imports modules of libraries that an extra, which has the name of the format, installs."""
    try:
        return [importlib.import_module(name) for name in modules]
    except ImportError as error:
        raise InputError(
            f"--format={extra} needs libraries that pip install -e '.[{extra}]' installs. "
            f"Received: {error}"
        ) from None


@contextlib.contextmanager
def report_refusals(library: str) -> Iterator[None]:
    """Turns whatever a library raises into an `InputError` of one line.

    Converters and checkers raise classes of their own, with messages of many lines.
    """
    try:
        yield
    except (InputError, OSError, MemoryError):
        raise  # a full disk is no fault of the model
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
        raise InputError(
            f"{library} must be able to convert the model: another --format may. Received: "
            f"{type(error).__name__}: {reason[:300]}"
        ) from error
