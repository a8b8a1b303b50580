"""The parts of an encoder that are not layers, such as the base class of models with heads.

Shapes: B batch, T tokens, N heads, H hidden, S sequences of a packed row, P positions.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self

import keras
from keras import ops

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from bert_tf.layers import BlockInputs, call_block, gather_positions


class EncoderInputs(NamedTuple):
    """An encoder's inputs with the optional ones filled in.

    All are [B, T] integers, except sequence_starts [B, S]. Only packed rows have the last three.
    """

    input_ids: Any
    input_mask: Any
    segment_ids: Any
    segment_index: Any = None
    position_ids: Any = None
    sequence_starts: Any = None


PACKED_INPUTS = ("segment_index", "position_ids", "sequence_starts")


def encoder_inputs(inputs: Mapping[str, Any], config: EncoderConfig) -> EncoderInputs:
    """Converts the inputs of `BertModel.call` to `EncoderInputs`, with Google's defaults.

    Raises a ValueError for sequences longer than the configuration's positions, and for packed rows
    with only some of the `PACKED_INPUTS`.
    """
    input_ids = inputs["input_ids"]
    length = input_ids.shape[1]
    packed = {name: inputs[name] for name in PACKED_INPUTS if name in inputs}
    if packed and len(packed) < len(PACKED_INPUTS):
        raise ValueError(
            f"Packed rows must have {', '.join(PACKED_INPUTS)}. Received: {', '.join(packed)}"
        )
    # A packed row may be longer, as its positions restart in every sequence. In an exported graph
    # the length is unknown (None), and its caller truncates the sequences.
    if length is not None and length > config.max_position_embeddings and not packed:
        raise ValueError(
            "Sequences must have a length of at most max_position_embeddings. Received: "
            f"length={length}, max_position_embeddings={config.max_position_embeddings}"
        )
    input_mask, segment_ids = inputs.get("input_mask"), inputs.get("segment_ids")
    if input_mask is None:
        input_mask = ops.ones_like(input_ids)
    if segment_ids is None:
        segment_ids = ops.zeros_like(input_ids)
    return EncoderInputs(input_ids, input_mask, segment_ids, **packed)


def run_last_block(
    run: Callable[[BlockInputs], Any], inputs: BlockInputs, sequence_starts: Any, positions: Any
) -> tuple[Any, Any]:
    """Runs an encoder's last block at `positions`, [B, P] or None, and at the [CLS] tokens.

    Computing only the few masked positions of pre-training saves most of the block's work. If
    `sequence_starts` [B, S] is None, each row is one sequence.

    Returns:
        The output at the positions [B, P, H] and at the [CLS] tokens [B, H] or [B, S, H].
    """
    if positions is None:
        x = run(inputs)  # [B, T, H]
        return x, x[:, 0] if sequence_starts is None else gather_positions(x, sequence_starts)
    starts = ops.zeros_like(positions[:, :1]) if sequence_starts is None else sequence_starts
    starts = ops.cast(starts, positions.dtype)  # [B, S]
    wanted = ops.concatenate([starts, positions], axis=1)  # [B, S + P]
    x = run(inputs._replace(positions=wanted))  # [B, S + P, H]
    # Not starts.shape[1], which is None in a graph with a variable P.
    count = 1 if sequence_starts is None else ops.shape(sequence_starts)[1]
    return x[:, count:], x[:, 0] if sequence_starts is None else x[:, :count]


class InnerOutputs(NamedTuple):
    """The hidden states and attention probabilities of an encoder of L blocks."""

    # L + 1 arrays [B, T, H]: the embedding output as the first block reads it (after ALBERT's
    # projection), then each block's output. The last one is the encoder's output.
    hidden_states: list[Any]
    # L arrays [B, N, T, T], each query's probabilities over the keys; or empty.
    attentions: list[Any]


def run_inside(
    encoder: keras.Model,
    inputs: Mapping[str, Any],
    return_probabilities: bool = False,
    call_block: Callable[..., Any] = call_block,
) -> InnerOutputs:
    """Runs an encoder without dropout and returns its hidden states and attention probabilities.

    The results are in the order of the block calls (ALBERT's layers share their blocks). Blocks are
    called through `call_block` unless attention probabilities are returned.
    """
    hidden_states, attentions = [], []

    def run_block(block, x, inputs, training=None):
        hidden_states.append(x)
        if not return_probabilities:
            return call_block(block, x, inputs, training)
        x, probabilities = block(x, inputs, training=training, return_probabilities=True)
        attentions.append(probabilities)
        return x

    outputs = encoder(inputs, training=False, run_block=run_block)
    return InnerOutputs([*hidden_states, outputs["sequence_output"]], attentions)


class HeadOutput(NamedTuple):
    """A head's computation on an encoder's outputs, for exports."""

    parts: tuple[str, ...]  # the layers of the model or its encoder whose weights the head needs
    compute: Callable[[Mapping[str, Any]], Any]  # takes the return value of the encoder's `call`


class EncoderModel(keras.Model):
    """The base class of models that add heads to an encoder.

    Besides the heads, a subclass needs an `objective`, Google's names of the heads (`google_names`,
    if there are any), a `call` with the keyword `run_block`, and `self.build()` at the end of its
    constructor. To be exported after pre-training, it also needs `head_outputs`.

    Args:
        name: must differ from the encoder's name, as every variable's path begins with one of them.
    """

    def __init__(self, encoder: keras.Model, name: str, **kwargs: Any) -> None:
        super().__init__(name=name, dtype=kwargs.pop("dtype", encoder.dtype_policy), **kwargs)
        if name == encoder.name:
            raise ValueError(f"the model and its encoder need two names. Received: {name!r} twice")
        self.encoder = encoder
        self.config = encoder.config

    @property
    def networks(self) -> tuple[keras.Model, ...]:
        """The networks below the heads, each with its own `google_names`."""
        return (self.encoder,)

    def head_outputs(self) -> dict[str, HeadOutput]:
        """Returns a `HeadOutput` for each output of a pre-trained model's heads, by name."""
        raise InputError(
            "an export needs what the heads compute, as head_outputs of the model says it. "
            f"Received: {type(self).__name__} without it"
        )

    def get_config(self) -> dict[str, Any]:
        encoder = keras.saving.serialize_keras_object(self.encoder)
        return {**super().get_config(), "encoder": encoder}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        encoder = keras.saving.deserialize_keras_object(config["encoder"])
        return cls(encoder, **{key: value for key, value in config.items() if key != "encoder"})
