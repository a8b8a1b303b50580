"""Loads the names of a package when they are first used."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from bert_common.startup import check_packages


def load_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Returns a `__getattr__` for a package (PEP 562), so that its import imports nothing heavy.

    `homes` maps each name to the module that defines it.
    """

    def load(name):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        check_packages()
        return getattr(importlib.import_module(homes[name]), name)

    return load
