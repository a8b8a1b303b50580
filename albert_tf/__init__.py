"""ALBERT: its configuration, wiring and checkpoint names; open model first."""

import importlib
from typing import TYPE_CHECKING

from bert_common.startup import check_packages

# Loaded when first used, so that reading a configuration does not import TensorFlow.
_HOMES = {"AlbertConfig": "albert_tf.config", "AlbertModel": "albert_tf.model"}

__all__ = list(_HOMES)

if TYPE_CHECKING:  # checkers of types do not run __getattr__
    from albert_tf.config import AlbertConfig as AlbertConfig
    from albert_tf.model import AlbertModel as AlbertModel


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module 'albert_tf' has no attribute {name!r}")
    check_packages()
    return getattr(importlib.import_module(_HOMES[name]), name)
