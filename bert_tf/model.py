"""The BERT encoder (arXiv:1810.04805).

Shapes: B batch, T tokens, H hidden, S sequences of a packed row, P positions asked for.
"""

import dataclasses
import functools
from typing import NamedTuple

import keras
from keras import ops

from bert_tf.config import BertConfig
from bert_tf.layers import (
    Embeddings,
    TransformerBlock,
    attention_bias,
    dense,
    gather_positions,
    run_block,
)

# Our variables (path below the model's own name) and Google's (google-research/bert).
GOOGLE_NAMES = {
    "embeddings/word_embeddings": "bert/embeddings/word_embeddings",
    "embeddings/token_type_embeddings": "bert/embeddings/token_type_embeddings",
    "embeddings/position_embeddings": "bert/embeddings/position_embeddings",
    "embeddings/layer_norm/gamma": "bert/embeddings/LayerNorm/gamma",
    "embeddings/layer_norm/beta": "bert/embeddings/LayerNorm/beta",
    "layer_{i}/attention/query/kernel": "bert/encoder/layer_{i}/attention/self/query/kernel",
    "layer_{i}/attention/query/bias": "bert/encoder/layer_{i}/attention/self/query/bias",
    "layer_{i}/attention/key/kernel": "bert/encoder/layer_{i}/attention/self/key/kernel",
    "layer_{i}/attention/key/bias": "bert/encoder/layer_{i}/attention/self/key/bias",
    "layer_{i}/attention/value/kernel": "bert/encoder/layer_{i}/attention/self/value/kernel",
    "layer_{i}/attention/value/bias": "bert/encoder/layer_{i}/attention/self/value/bias",
    "layer_{i}/attention_output/kernel": "bert/encoder/layer_{i}/attention/output/dense/kernel",
    "layer_{i}/attention_output/bias": "bert/encoder/layer_{i}/attention/output/dense/bias",
    "layer_{i}/attention_layer_norm/gamma": (
        "bert/encoder/layer_{i}/attention/output/LayerNorm/gamma"
    ),
    "layer_{i}/attention_layer_norm/beta": "bert/encoder/layer_{i}/attention/output/LayerNorm/beta",
    "layer_{i}/intermediate/kernel": "bert/encoder/layer_{i}/intermediate/dense/kernel",
    "layer_{i}/intermediate/bias": "bert/encoder/layer_{i}/intermediate/dense/bias",
    "layer_{i}/output/kernel": "bert/encoder/layer_{i}/output/dense/kernel",
    "layer_{i}/output/bias": "bert/encoder/layer_{i}/output/dense/bias",
    "layer_{i}/output_layer_norm/gamma": "bert/encoder/layer_{i}/output/LayerNorm/gamma",
    "layer_{i}/output_layer_norm/beta": "bert/encoder/layer_{i}/output/LayerNorm/beta",
    "pooler/kernel": "bert/pooler/dense/kernel",
    "pooler/bias": "bert/pooler/dense/bias",
}


@keras.saving.register_keras_serializable(package="bert_tf")
class BertModel(keras.Model):
    """Token ids in, a vector for each token and one for the sequence out.

    All weights exist when the constructor returns.

    Args:
        config: a `BertConfig`.

    Example:
        model = BertModel(BertConfig.from_preset("tiny", vocab_size=1000))
        out = model({"input_ids": ids, "input_mask": mask, "segment_ids": types})
    """

    google_names = GOOGLE_NAMES

    def __init__(self, config, name="bert", **kwargs):
        super().__init__(name=name, **kwargs)
        self.config = config
        policy = self.dtype_policy
        self.embeddings = Embeddings(config, name="embeddings", dtype=policy)
        self.blocks = [
            TransformerBlock(config, name=f"layer_{i}", dtype=policy)
            for i in range(config.num_hidden_layers)
        ]
        self.pooler = dense(config.hidden_size, config, "pooler", activation="tanh", dtype=policy)
        self.build()

    def build(self, input_shape=None):
        self.embeddings.build()
        for block in self.blocks:
            block.build()
        self.pooler.build((None, self.config.hidden_size))

    def call(
        self,
        inputs,
        training=None,
        return_all_layers=False,
        positions=None,
        run_block=run_block,
    ):
        """Runs the encoder.

        Args:
            inputs: a dict of [B, T] integers: input_ids, and, if wanted, input_mask (1 for a
                token, 0 for padding; all ones without it) and segment_ids (zeros without it).
                Packed rows also have segment_index and position_ids [B, T] and
                sequence_starts [B, S], all three. Other keys are left alone.
            training: whether dropout is on.
            return_all_layers: whether to add "embedding_output" and "encoder_outputs".
            positions: [B, P] integers below T: where the sequence output is wanted, and the last
                block is run. None: everywhere, P = T.
            run_block: how each block is run; see `bert_tf.layers.run_block`.

        Returns:
            A dict: "sequence_output" [B, P, H], "pooled_output" [B, H] (packed rows:
            [B, S, H]), and, if asked for,
            "embedding_output" [B, T, H] and "encoder_outputs", a list with every layer's
            [B, T, H].

        Raises:
            ValueError: sequences longer than max_position_embeddings, or of unknown length.
        """
        inputs = encoder_inputs(inputs, self.config)
        bias = attention_bias(inputs.input_mask, inputs.segment_index)  # [B, 1, 1 or T, T]
        x = self.embeddings(
            inputs.input_ids, inputs.segment_ids, inputs.position_ids, training=training
        )  # [B, T, H]
        outputs = {"embedding_output": x, "encoder_outputs": []}
        for block in self.blocks[:-1]:
            x = run_block(block, x, bias, training=training)
            outputs["encoder_outputs"].append(x)
        last = functools.partial(run_block, self.blocks[-1], x, bias, training=training)
        x, first = run_last_block(last, inputs.sequence_starts, positions)
        outputs["encoder_outputs"].append(x)
        outputs = outputs if return_all_layers else {}
        return {"sequence_output": x, "pooled_output": self.pooler(first), **outputs}

    def get_config(self):
        return {**super().get_config(), **dataclasses.asdict(self.config)}

    @classmethod
    def from_config(cls, config):
        sizes = {field.name for field in dataclasses.fields(BertConfig)}
        rest = {key: value for key, value in config.items() if key not in sizes}
        return cls(BertConfig(**{key: config[key] for key in sizes}), **rest)


class EncoderInputs(NamedTuple):
    """What an encoder is given, with nothing left out; the last three are None but for packed rows.

    Attributes: [B, T] integers each, sequence_starts [B, S].
    """

    input_ids: object
    input_mask: object
    segment_ids: object
    segment_index: object = None
    position_ids: object = None
    sequence_starts: object = None


PACKED_INPUTS = ("segment_index", "position_ids", "sequence_starts")


def encoder_inputs(inputs, config):
    """Fills in what `inputs` leaves out, as Google's models do.

    Returns:
        An `EncoderInputs`.

    Raises:
        ValueError: sequences longer than the configuration has positions, or of unknown length;
            or some of the features of packed rows without the others.
    """
    input_ids = inputs["input_ids"]
    length = input_ids.shape[1]
    packed = {name: inputs[name] for name in PACKED_INPUTS if name in inputs}
    if packed and len(packed) < len(PACKED_INPUTS):
        raise ValueError(
            f"Packed rows must have {', '.join(PACKED_INPUTS)}. Received: {', '.join(packed)}"
        )
    # A packed row may be longer: its positions start anew in every sequence.
    if length is None or (length > config.max_position_embeddings and not packed):
        # The length must be known when the graph is made: XLA compiles for it.
        raise ValueError(
            "Sequences must have a fixed length of at most max_position_embeddings. Received: "
            f"length={length}, max_position_embeddings={config.max_position_embeddings}"
        )
    input_mask = inputs.get("input_mask")
    segment_ids = inputs.get("segment_ids")
    if input_mask is None:
        input_mask = ops.ones_like(input_ids)
    if segment_ids is None:
        segment_ids = ops.zeros_like(input_ids)
    return EncoderInputs(input_ids, input_mask, segment_ids, **packed)


def run_last_block(run, sequence_starts, positions):
    """Runs an encoder's last block where something reads its output.

    That is at the [CLS] tokens and at `positions`. With the few masked positions of pre-training
    most of this block's work falls away, the same results given: only its keys and values come
    from all tokens.

    Args:
        run: the block as a function of `positions`, as `TransformerBlock.call` has them.
        sequence_starts: [B, S] integers, None for a row that is one sequence.
        positions: [B, P] integers; None: everywhere, P = T.

    Returns:
        The output at the positions [B, P, H], and at the [CLS] tokens [B, H] or [B, S, H].
    """
    if positions is None:
        x = run()  # [B, T, H]
        return x, x[:, 0] if sequence_starts is None else gather_positions(x, sequence_starts)
    starts = ops.zeros_like(positions[:, :1]) if sequence_starts is None else sequence_starts
    starts = ops.cast(starts, positions.dtype)  # [B, S]
    x = run(positions=ops.concatenate([starts, positions], axis=1))  # [B, S + P, H]
    number = starts.shape[1]
    return x[:, number:], x[:, 0] if sequence_starts is None else x[:, :number]
