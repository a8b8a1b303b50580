"""Implements the ELECTRA encoder and its objective; open model first."""

from typing import TYPE_CHECKING

from bert_common.lazy_names import load_lazily

# Loaded on first use, so that reading a configuration does not import TensorFlow.
_HOMES = {
    "ElectraConfig": "electra_tf.config",
    "ElectraModel": "electra_tf.model",
    "ReplacedTokensModel": "electra_tf.replaced_tokens",
}

__all__ = list(_HOMES)

if TYPE_CHECKING:  # type checkers do not run __getattr__
    from electra_tf.config import ElectraConfig as ElectraConfig
    from electra_tf.model import ElectraModel as ElectraModel
    from electra_tf.replaced_tokens import ReplacedTokensModel as ReplacedTokensModel

__getattr__ = load_lazily(__name__, _HOMES)
