"""The BERT model, the layers ALBERT shares with it, and the training code; open model first."""

from typing import TYPE_CHECKING

from bert_common.lazy_names import load_lazily

# Loaded on first use, so that reading a configuration does not import TensorFlow.
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

if TYPE_CHECKING:  # type checkers do not run __getattr__
    from bert_tf.checkpoint import load_google_checkpoint as load_google_checkpoint
    from bert_tf.config import BertConfig as BertConfig
    from bert_tf.model import BertModel as BertModel
    from bert_tf.optimization import AdamWeightDecay as AdamWeightDecay
    from bert_tf.optimization import Lamb as Lamb
    from bert_tf.optimization import WarmupPolynomialDecay as WarmupPolynomialDecay
    from bert_tf.pretraining import PretrainingModel as PretrainingModel

__getattr__ = load_lazily(__name__, _HOMES)
