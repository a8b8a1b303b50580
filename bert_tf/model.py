"""The BERT encoder (arXiv:1810.04805).

Shapes: B batch, T tokens, E embedding (H in BERT), H hidden, S sequences of a packed row,
P positions.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Self

import keras

from bert_common.errors import InputError
from bert_tf.attention import attention, attention_bias
from bert_tf.config import BertConfig, EncoderConfig
from bert_tf.encoder import encoder_inputs, run_last_block
from bert_tf.layers import BlockInputs, Embeddings, Shape, TransformerBlock, call_block, dense

# Our variable names (the path below the model's own name) -> Google's (google-research/bert).
# {w} is kernel or bias, or gamma or beta in a layer norm.
GOOGLE_NAMES = {
    "embeddings/word_embeddings": "bert/embeddings/word_embeddings",
    "embeddings/token_type_embeddings": "bert/embeddings/token_type_embeddings",
    "embeddings/position_embeddings": "bert/embeddings/position_embeddings",
    "embeddings/layer_norm/{w}": "bert/embeddings/LayerNorm/{w}",
    "layer_{i}/attention/query/{w}": "bert/encoder/layer_{i}/attention/self/query/{w}",
    "layer_{i}/attention/key/{w}": "bert/encoder/layer_{i}/attention/self/key/{w}",
    "layer_{i}/attention/value/{w}": "bert/encoder/layer_{i}/attention/self/value/{w}",
    "layer_{i}/attention_output/{w}": "bert/encoder/layer_{i}/attention/output/dense/{w}",
    "layer_{i}/attention_layer_norm/{w}": "bert/encoder/layer_{i}/attention/output/LayerNorm/{w}",
    "layer_{i}/intermediate/{w}": "bert/encoder/layer_{i}/intermediate/dense/{w}",
    "layer_{i}/output/{w}": "bert/encoder/layer_{i}/output/dense/{w}",
    "layer_{i}/output_layer_norm/{w}": "bert/encoder/layer_{i}/output/LayerNorm/{w}",
    "pooler/{w}": "bert/pooler/dense/{w}",
}


@keras.saving.register_keras_serializable(package="bert_tf")
class BertModel(keras.Model):
    """Maps token ids to one vector per token and one vector for the sequence.

    All weights exist when the constructor returns.

    Args:
        attention_function: computes attention in every block: `bert_tf.attention.attention`, or a
            function with the same arguments. It is not saved with the model.
        embeddings: the embeddings of another network, to share them; None to create new ones.

    Example:
        model = BertModel(BertConfig.from_preset("tiny", vocab_size=1000))
        out = model({"input_ids": ids, "input_mask": mask, "segment_ids": types})
    """

    default_name = "bert"
    config_class: type[EncoderConfig] = BertConfig
    block_class: type[TransformerBlock] = TransformerBlock
    google_names = GOOGLE_NAMES
    # What pre-training predicts about two segments: whether the second one follows the first.
    sentence_objective: str | None = "next_sentence"

    def __init__(
        self,
        config: EncoderConfig,
        name: str | None = None,
        attention_function: Callable[..., Any] = attention,
        embeddings: Embeddings | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(config, self.config_class):
            raise InputError(
                f"{type(self).__name__} must have a configuration of class "
                f"{self.config_class.__name__}. Received: {type(config).__name__}"
            )
        super().__init__(name=name or self.default_name, **kwargs)
        self.config = config
        self.attention_function = attention_function
        policy, hidden = self.dtype_policy, config.hidden_size
        self.embeddings = embeddings or Embeddings(config, name="embeddings", dtype=policy)
        # As in Google's code, there is none if the widths are equal, as BERT's always are.
        self.projection = None
        if config.embedding_size != hidden:
            self.projection = dense(hidden, config, "embedding_projection", dtype=policy)
        block = functools.partial(self.block_class, config, attention_function, dtype=policy)
        self.make_blocks(block)
        self.pooler = None
        if config.has_pooler:
            self.pooler = dense(hidden, config, "pooler", activation="tanh", dtype=policy)
        self.build()

    def make_blocks(self, block: Callable[..., TransformerBlock]) -> None:
        """Creates the blocks that have their own weights by calling `block` with a `name`."""
        self.blocks = [block(name=f"layer_{i}") for i in range(self.config.num_hidden_layers)]

    def block_calls(self) -> list[TransformerBlock]:
        """Returns the blocks in the order in which they run."""
        return self.blocks

    def build(self, input_shape: Shape | None = None) -> None:
        if not self.embeddings.built:
            self.embeddings.build()
        if self.projection is not None:
            self.projection.build((None, None, self.config.embedding_size))
        for block in self.block_calls():
            if not block.built:
                block.build()
        if self.pooler is not None:
            self.pooler.build((None, self.config.hidden_size))

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        return_all_layers: bool = False,
        positions: Any = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the encoder.

        Args:
            inputs: a dict of [B, T] integers: input_ids, and optionally input_mask (1 for a
                token, 0 for padding; default: all ones) and segment_ids (default: zeros).
                Packed rows must also have segment_index and position_ids [B, T] and
                sequence_starts [B, S]. Other keys are ignored.
            training: whether dropout is on.
            return_all_layers: whether to add "embedding_output", "encoder_input" and
                "encoder_outputs".
            positions, run_block: see `bert_tf.layers`.

        Returns:
            A dict with "sequence_output" [B, P, H] and "pooled_output" [B, H] (packed rows:
            [B, S, H]), which is the output at [CLS] if there is no pooler. With all layers also
            "embedding_output" [B, T, E], "encoder_input" [B, T, H], which the first block reads,
            and "encoder_outputs", a list of every block's output, [B, T, H] each except the last,
            [B, P, H].

        Raises:
            ValueError: sequences are longer than max_position_embeddings.
        """
        inputs = encoder_inputs(inputs, self.config)
        bias = attention_bias(inputs.input_mask, inputs.segment_index)  # [B, 1, 1 or T, T]
        of_blocks = BlockInputs(bias, inputs.position_ids)
        embedded = x = self.embeddings(
            inputs.input_ids, inputs.segment_ids, inputs.position_ids, training=training
        )  # [B, T, E]
        if self.projection is not None:
            x = self.projection(x)  # [B, T, H]
        outputs = {"embedding_output": embedded, "encoder_input": x, "encoder_outputs": []}
        *blocks, last_block = self.block_calls()
        for block in blocks:
            x = run_block(block, x, of_blocks, training=training)
            outputs["encoder_outputs"].append(x)
        last = functools.partial(run_block, last_block, x, training=training)
        x, first = run_last_block(last, of_blocks, inputs.sequence_starts, positions)
        outputs["encoder_outputs"].append(x)
        outputs = outputs if return_all_layers else {}
        pooled = first if self.pooler is None else self.pooler(first)
        return {"sequence_output": x, "pooled_output": pooled, **outputs}

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        sizes = {field.name for field in dataclasses.fields(cls.config_class)}
        rest = {key: value for key, value in config.items() if key not in sizes}
        return cls(cls.config_class(**{key: config[key] for key in sizes}), **rest)
