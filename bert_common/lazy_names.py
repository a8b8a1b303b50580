"""Names of a package that are loaded when they are first used."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from bert_common.startup import check_packages


def load_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Makes the `__getattr__` of a package (PEP 562), so that importing it imports nothing heavy.

    `homes` has the module that each name comes from.
    """

    def load(name):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        check_packages()
        return getattr(importlib.import_module(homes[name]), name)

    return load
