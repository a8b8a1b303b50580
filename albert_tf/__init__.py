"""Implements the ALBERT encoder; open model first."""

from typing import TYPE_CHECKING

from bert_common.lazy_names import load_lazily

# Loaded on first use, so that reading a configuration does not import TensorFlow.
_HOMES = {"AlbertConfig": "albert_tf.config", "AlbertModel": "albert_tf.model"}

__all__ = list(_HOMES)

if TYPE_CHECKING:  # type checkers do not run __getattr__
    from albert_tf.config import AlbertConfig as AlbertConfig
    from albert_tf.model import AlbertModel as AlbertModel

__getattr__ = load_lazily(__name__, _HOMES)
