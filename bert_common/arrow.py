"""Imports the optional pyarrow, whose errors on damaged files become one-line errors."""

import contextlib
import types
from collections.abc import Iterator

from bert_common.errors import InputError


def import_pyarrow(path: str, kind: str) -> types.ModuleType:
    """Returns pyarrow, with its compute and Parquet modules imported.

    `path` and its `kind`, such as "Parquet", appear in the error if pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            f"{kind} files require pyarrow (pip install -e '.[parquet]'). "
            f"Received: {path}, but pyarrow is not installed"
        ) from None
    return pyarrow


@contextlib.contextmanager
def report_damage(path: str, kind: str) -> Iterator[None]:
    """Turns pyarrow's errors about the contents of a file into an `InputError`."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{path} must be a complete {kind}. Received: {reason}") from None
