"""ALBERT: its configuration, wiring and checkpoint names; open model first."""

from bert_common.lazy_names import load_lazily

# Loaded when first used, so that reading a configuration does not import TensorFlow.
_HOMES = {"AlbertConfig": "albert_tf.config", "AlbertModel": "albert_tf.model"}

__all__ = list(_HOMES)

__getattr__ = load_lazily(__name__, _HOMES)
