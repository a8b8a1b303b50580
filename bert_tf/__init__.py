"""BERT, the parts that ALBERT shares with it, and what trains both; open model first."""

from bert_common.lazy_names import load_lazily

# Loaded when first used, so that reading a configuration does not import TensorFlow.
_HOMES = {
    "BertConfig": "bert_tf.config",
    "BertModel": "bert_tf.model",
    "PretrainingModel": "bert_tf.pretraining",
    "load_google_checkpoint": "bert_tf.checkpoint",
    "AdamWeightDecay": "bert_tf.optimization",
    "Lamb": "bert_tf.optimization",
    "WarmupPolynomialDecay": "bert_tf.optimization",
}

__all__ = list(_HOMES)

__getattr__ = load_lazily(__name__, _HOMES)
