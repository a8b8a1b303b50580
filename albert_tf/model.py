"""The ALBERT encoder (arXiv:1909.11942): narrow embeddings, blocks that share weights.

Shapes: B batch, T tokens, E embedding, H hidden, S sequences of a packed row, P positions.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Self

import keras

from albert_tf.config import AlbertConfig
from bert_tf.attention import attention, attention_bias
from bert_tf.encoder import encoder_inputs, run_last_block
from bert_tf.layers import BlockInputs, Embeddings, Shape, TransformerBlock, call_block, dense

_INNER = "bert/encoder/transformer/group_{g}/inner_group_{k}"

# Our variables (path below the model's own name) and Google's (google-research/albert, where
# the down-projection sits inside "intermediate", and LayerNorm_1 is the second of two); {w} is
# kernel or bias, of a layer norm gamma or beta.
GOOGLE_NAMES = {
    "embeddings/word_embeddings": "bert/embeddings/word_embeddings",
    "embeddings/token_type_embeddings": "bert/embeddings/token_type_embeddings",
    "embeddings/position_embeddings": "bert/embeddings/position_embeddings",
    "embeddings/layer_norm/{w}": "bert/embeddings/LayerNorm/{w}",
    "embedding_projection/{w}": "bert/encoder/embedding_hidden_mapping_in/{w}",
    "group_{g}_inner_{k}/attention/query/{w}": f"{_INNER}/attention_1/self/query/{{w}}",
    "group_{g}_inner_{k}/attention/key/{w}": f"{_INNER}/attention_1/self/key/{{w}}",
    "group_{g}_inner_{k}/attention/value/{w}": f"{_INNER}/attention_1/self/value/{{w}}",
    "group_{g}_inner_{k}/attention_output/{w}": f"{_INNER}/attention_1/output/dense/{{w}}",
    "group_{g}_inner_{k}/attention_layer_norm/{w}": f"{_INNER}/LayerNorm/{{w}}",
    "group_{g}_inner_{k}/intermediate/{w}": f"{_INNER}/ffn_1/intermediate/dense/{{w}}",
    "group_{g}_inner_{k}/output/{w}": f"{_INNER}/ffn_1/intermediate/output/dense/{{w}}",
    "group_{g}_inner_{k}/output_layer_norm/{w}": f"{_INNER}/LayerNorm_1/{{w}}",
    "pooler/{w}": "bert/pooler/dense/{w}",
}


@keras.saving.register_keras_serializable(package="albert_tf")
class AlbertModel(keras.Model):
    """A `bert_tf.BertModel` with narrow embeddings, whose layers share their blocks.

    Args:
        config: an `AlbertConfig`.
        attention_function: as `BertModel` takes it.
    """

    google_names = GOOGLE_NAMES
    # What its pre-training predicts of two segments: whether they are in order.
    sentence_objective = "sentence_order"

    def __init__(
        self,
        config: AlbertConfig,
        name: str = "albert",
        attention_function: Callable[..., Any] = attention,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.config = config
        policy = self.dtype_policy
        self.embeddings = Embeddings(config, name="embeddings", dtype=policy)
        hidden = config.hidden_size
        # As Google: no projection where the widths are equal.
        self.projection = None
        if config.embedding_size != hidden:
            self.projection = dense(hidden, config, "embedding_projection", dtype=policy)
        block = functools.partial(TransformerBlock, config, attention_function, dtype=policy)
        self.groups = [
            [block(name=f"group_{g}_inner_{k}") for k in range(config.inner_group_num)]
            for g in range(config.num_hidden_groups)
        ]
        self.pooler = dense(hidden, config, "pooler", activation="tanh", dtype=policy)
        self.build()

    def build(self, input_shape: Shape | None = None) -> None:
        self.embeddings.build()
        if self.projection is not None:
            self.projection.build((None, None, self.config.embedding_size))
        for group in self.groups:
            for block in group:
                block.build()
        self.pooler.build((None, self.config.hidden_size))

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        return_all_layers: bool = False,
        positions: Any = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Does what `BertModel.call` does, but "embedding_output" is [B, T, E].

        "encoder_outputs" has num_hidden_layers x inner_group_num entries.
        """
        inputs = encoder_inputs(inputs, self.config)
        bias = attention_bias(inputs.input_mask, inputs.segment_index)  # [B, 1, 1 or T, T]
        of_blocks = BlockInputs(bias, inputs.position_ids)
        x = self.embeddings(
            inputs.input_ids, inputs.segment_ids, inputs.position_ids, training=training
        )  # [B, T, E]
        embedded = x
        if self.projection is not None:
            x = self.projection(x)  # [B, T, H]
        outputs = {"embedding_output": embedded, "encoder_input": x, "encoder_outputs": []}
        layers = self.config.num_hidden_layers
        blocks = [b for i in range(layers) for b in self.groups[i * len(self.groups) // layers]]
        for block in blocks[:-1]:
            x = run_block(block, x, of_blocks, training=training)
            outputs["encoder_outputs"].append(x)
        last = functools.partial(run_block, blocks[-1], x, training=training)
        x, first = run_last_block(last, of_blocks, inputs.sequence_starts, positions)
        outputs["encoder_outputs"].append(x)
        outputs = outputs if return_all_layers else {}
        return {"sequence_output": x, "pooled_output": self.pooler(first), **outputs}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        sizes = {field.name for field in dataclasses.fields(AlbertConfig)}
        rest = {key: value for key, value in config.items() if key not in sizes}
        return cls(AlbertConfig(**{key: config[key] for key in sizes}), **rest)
