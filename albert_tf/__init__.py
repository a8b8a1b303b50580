"""ALBERT: its configuration, wiring and checkpoint names; open model first."""

from typing import TYPE_CHECKING

from bert_common.lazy_names import load_lazily

# Loaded when first used, so that reading a configuration does not import TensorFlow.
_HOMES = {"AlbertConfig": "albert_tf.config", "AlbertModel": "albert_tf.model"}

__all__ = list(_HOMES)

if TYPE_CHECKING:  # checkers of types do not run __getattr__
    from albert_tf.config import AlbertConfig as AlbertConfig
    from albert_tf.model import AlbertModel as AlbertModel

__getattr__ = load_lazily(__name__, _HOMES)
