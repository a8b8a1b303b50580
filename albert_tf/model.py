"""The ALBERT encoder (arXiv:1909.11942): narrow embeddings, blocks that share weights.

Shapes: B batch, T tokens, E embedding, H hidden, S sequences of a packed row, P positions.
"""

import dataclasses
import functools

import keras

from albert_tf.config import AlbertConfig
from bert_tf.attention import attention, attention_bias
from bert_tf.encoder import encoder_inputs, run_last_block
from bert_tf.layers import Embeddings, TransformerBlock, call_block, dense

_INNER = "bert/encoder/transformer/group_{g}/inner_group_{k}"

# Our variables (path below the model's own name) and Google's (google-research/albert, where
# the down-projection sits inside "intermediate", and LayerNorm_1 is the second of two).
GOOGLE_NAMES = {
    "embeddings/word_embeddings": "bert/embeddings/word_embeddings",
    "embeddings/token_type_embeddings": "bert/embeddings/token_type_embeddings",
    "embeddings/position_embeddings": "bert/embeddings/position_embeddings",
    "embeddings/layer_norm/gamma": "bert/embeddings/LayerNorm/gamma",
    "embeddings/layer_norm/beta": "bert/embeddings/LayerNorm/beta",
    "embedding_projection/kernel": "bert/encoder/embedding_hidden_mapping_in/kernel",
    "embedding_projection/bias": "bert/encoder/embedding_hidden_mapping_in/bias",
    "group_{g}_inner_{k}/attention/query/kernel": f"{_INNER}/attention_1/self/query/kernel",
    "group_{g}_inner_{k}/attention/query/bias": f"{_INNER}/attention_1/self/query/bias",
    "group_{g}_inner_{k}/attention/key/kernel": f"{_INNER}/attention_1/self/key/kernel",
    "group_{g}_inner_{k}/attention/key/bias": f"{_INNER}/attention_1/self/key/bias",
    "group_{g}_inner_{k}/attention/value/kernel": f"{_INNER}/attention_1/self/value/kernel",
    "group_{g}_inner_{k}/attention/value/bias": f"{_INNER}/attention_1/self/value/bias",
    "group_{g}_inner_{k}/attention_output/kernel": f"{_INNER}/attention_1/output/dense/kernel",
    "group_{g}_inner_{k}/attention_output/bias": f"{_INNER}/attention_1/output/dense/bias",
    "group_{g}_inner_{k}/attention_layer_norm/gamma": f"{_INNER}/LayerNorm/gamma",
    "group_{g}_inner_{k}/attention_layer_norm/beta": f"{_INNER}/LayerNorm/beta",
    "group_{g}_inner_{k}/intermediate/kernel": f"{_INNER}/ffn_1/intermediate/dense/kernel",
    "group_{g}_inner_{k}/intermediate/bias": f"{_INNER}/ffn_1/intermediate/dense/bias",
    "group_{g}_inner_{k}/output/kernel": f"{_INNER}/ffn_1/intermediate/output/dense/kernel",
    "group_{g}_inner_{k}/output/bias": f"{_INNER}/ffn_1/intermediate/output/dense/bias",
    "group_{g}_inner_{k}/output_layer_norm/gamma": f"{_INNER}/LayerNorm_1/gamma",
    "group_{g}_inner_{k}/output_layer_norm/beta": f"{_INNER}/LayerNorm_1/beta",
    "pooler/kernel": "bert/pooler/dense/kernel",
    "pooler/bias": "bert/pooler/dense/bias",
}


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertModel(keras.Model):
    """As `bert_tf.BertModel`, with narrow embeddings and with layers that share their blocks.

    Args:
        config: an `AlbertConfig`.
        attention_function: as `BertModel` takes it.
    """

    google_names = GOOGLE_NAMES
    # What its pre-training predicts of two segments: whether they are in order.
    sentence_objective = "sentence_order"

    def __init__(self, config, name="albert", attention_function=attention, **kwargs):
        super().__init__(name=name, **kwargs)
        self.config = config
        policy = self.dtype_policy
        self.embeddings = Embeddings(config, name="embeddings", dtype=policy)
        # As Google: no projection where the widths are equal.
        self.projection = None
        if config.embedding_size != config.hidden_size:
            self.projection = dense(
                config.hidden_size, config, "embedding_projection", dtype=policy
            )
        self.groups = [
            [
                TransformerBlock(
                    config, attention_function, name=f"group_{g}_inner_{k}", dtype=policy
                )
                for k in range(config.inner_group_num)
            ]
            for g in range(config.num_hidden_groups)
        ]
        self.pooler = dense(config.hidden_size, config, "pooler", activation="tanh", dtype=policy)
        self.build()

    def build(self, input_shape=None):
        self.embeddings.build()
        if self.projection is not None:
            self.projection.build((None, None, self.config.embedding_size))
        for group in self.groups:
            for block in group:
                block.build()
        self.pooler.build((None, self.config.hidden_size))

    def call(
        self,
        inputs,
        training=None,
        return_all_layers=False,
        positions=None,
        run_block=call_block,
    ):
        """As `BertModel.call`, but "embedding_output" is [B, T, E].

        "encoder_outputs" has num_hidden_layers x inner_group_num entries.
        """
        inputs = encoder_inputs(inputs, self.config)
        bias = attention_bias(inputs.input_mask, inputs.segment_index)  # [B, 1, 1 or T, T]
        x = self.embeddings(
            inputs.input_ids, inputs.segment_ids, inputs.position_ids, training=training
        )  # [B, T, E]
        outputs = {"embedding_output": x, "encoder_outputs": []}
        if self.projection is not None:
            x = self.projection(x)  # [B, T, H]
        layers = self.config.num_hidden_layers
        blocks = [b for i in range(layers) for b in self.groups[i * len(self.groups) // layers]]
        for block in blocks[:-1]:
            x = run_block(block, x, bias, training=training)
            outputs["encoder_outputs"].append(x)
        last = functools.partial(run_block, blocks[-1], x, bias, training=training)
        x, first = run_last_block(last, inputs.sequence_starts, positions)
        outputs["encoder_outputs"].append(x)
        outputs = outputs if return_all_layers else {}
        return {"sequence_output": x, "pooled_output": self.pooler(first), **outputs}

    def get_config(self):
        return {**super().get_config(), **dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config):
        sizes = {field.name for field in dataclasses.fields(AlbertConfig)}
        rest = {key: value for key, value in config.items() if key not in sizes}
        return cls(AlbertConfig(**{key: config[key] for key in sizes}), **rest)
