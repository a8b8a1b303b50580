"""Imports the libraries of an export, which only those who want that export install."""

import importlib

from bert_common.errors import InputError


def import_libraries(modules, extra):
    """Imports modules of libraries that an extra of setup.py installs.

    Args:
        modules: their names.
        extra: the extra, which has the name of the format.

    Returns:
        A list with each of them.

    Raises:
        InputError: one of them is not installed.
    """
    try:
        return [importlib.import_module(name) for name in modules]
    except ImportError as error:
        raise InputError(
            f"--format={extra} needs libraries that pip install -e '.[{extra}]' installs. "
            f"Received: {error}"
        ) from None
