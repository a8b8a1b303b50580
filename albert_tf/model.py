"""Defines the ALBERT encoder (arXiv:1909.11942)."""

from collections.abc import Callable

import keras

from albert_tf.config import AlbertConfig
from bert_tf.layers import TransformerBlock
from bert_tf.model import GOOGLE_NAMES as BERT_NAMES
from bert_tf.model import BertModel

_INNER = "bert/encoder/transformer/group_{g}/inner_group_{k}"

# Maps our variables (paths below the model's own name) to Google's (google-research/albert, where
# the down-projection is inside "intermediate", and LayerNorm_1 is the second of two). Only the
# blocks differ from BERT. {w} is kernel or bias, and gamma or beta for a layer norm.
GOOGLE_NAMES = {
    **{ours: google for ours, google in BERT_NAMES.items() if not ours.startswith("layer_")},
    "embedding_projection/{w}": "bert/encoder/embedding_hidden_mapping_in/{w}",
    "group_{g}_inner_{k}/attention/query/{w}": f"{_INNER}/attention_1/self/query/{{w}}",
    "group_{g}_inner_{k}/attention/key/{w}": f"{_INNER}/attention_1/self/key/{{w}}",
    "group_{g}_inner_{k}/attention/value/{w}": f"{_INNER}/attention_1/self/value/{{w}}",
    "group_{g}_inner_{k}/attention_output/{w}": f"{_INNER}/attention_1/output/dense/{{w}}",
    "group_{g}_inner_{k}/attention_layer_norm/{w}": f"{_INNER}/LayerNorm/{{w}}",
    "group_{g}_inner_{k}/intermediate/{w}": f"{_INNER}/ffn_1/intermediate/dense/{{w}}",
    "group_{g}_inner_{k}/output/{w}": f"{_INNER}/ffn_1/intermediate/output/dense/{{w}}",
    "group_{g}_inner_{k}/output_layer_norm/{w}": f"{_INNER}/LayerNorm_1/{{w}}",
}


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertModel(BertModel):
    """A `bert_tf.BertModel` with narrow embeddings, whose layers share their blocks.

    It takes the arguments of `BertModel`; its configuration is an `AlbertConfig`.
    """

    config: AlbertConfig
    default_name = "albert"
    config_class = AlbertConfig
    google_names = GOOGLE_NAMES
    # Its pre-training predicts whether two segments are in order.
    sentence_objective = "sentence_order"

    def make_blocks(self, block: Callable[..., TransformerBlock]) -> None:
        self.groups = [
            [block(name=f"group_{g}_inner_{k}") for k in range(self.config.inner_group_num)]
            for g in range(self.config.num_hidden_groups)
        ]

    def block_calls(self) -> list[TransformerBlock]:
        """Returns the num_hidden_layers x inner_group_num blocks in the order of their calls."""
        layers, groups = self.config.num_hidden_layers, self.groups
        return [block for i in range(layers) for block in groups[i * len(groups) // layers]]
