"""Runs a model in a graph on any number of rows of any length.

Shapes: B rows, R rows of a chunk, T tokens of a row.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import keras
import tensorflow as tf

from finetuning.inputs import ROW_INPUTS

# Weights of at most this many bytes are constants of the graph: TensorFlow then packs them once
# instead of at every call (BERT-base, 32 rows of 32 tokens, two cores: 0.64 s instead of 0.94 s).
# Larger weights are variables, because a graph holds less than 2 GiB.
MOST_CONSTANT_BYTES = 3 << 29

# Rows are sorted by length and run in chunks of at most this many tokens, padding included, so that
# memory is bounded and short rows are not padded to the longest one. BERT-base needs about 100 MiB
# for a chunk.
CHUNK_PIECES = 4096


Computed = TypeVar("Computed")


class Rows(NamedTuple):
    """Rows of the encoder's input: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""

    ids: tf.RaggedTensor  # int32 RaggedTensor [B, (T)]
    first_lengths: tf.Tensor  # int64 [B]: the number of a row's tokens in segment 0


class ServedModel:
    """A model with a graph for any number of rows of any length.

    Args:
        compute: a function of a batch, `ROW_INPUTS` int32 [B, T], to a dict of tensors [B, ...].
        pad_id: the id of padding.
        token_outputs: the names of the outputs that are [B, T, ...].
        are_fixed: whether the weights stay as they are; otherwise they are variables.

    Attributes:
        run: the function `compute` as a graph, whose inputs are `ROW_INPUTS`.
        weights: what a module must hold to be saved with it; empty if the weights are constants.
    """

    def __init__(
        self,
        model: keras.Model,
        compute: Callable[[dict[str, tf.Tensor]], Any],
        pad_id: int,
        token_outputs: Sequence[str] = (),
        are_fixed: bool = True,
    ) -> None:
        values = [(weight, weight.numpy()) for weight in model.variables]
        small = sum(value.nbytes for _, value in values) <= MOST_CONSTANT_BYTES
        self._constants = values if small and are_fixed else []
        self.weights = [] if self._constants else [weight.value for weight in model.variables]
        self.compute, self._pad_id = compute, pad_id
        self._token_outputs = token_outputs
        spec = tf.TensorSpec([None, None], tf.int32)
        self.run = tf.function(
            lambda batch: self.with_weights(lambda: compute(batch)),
            input_signature=[dict.fromkeys(ROW_INPUTS, spec)],
            autograph=False,
        )

    def with_weights(
        self, compute: Callable[[], Computed], used: Iterable[keras.Variable] | None = None
    ) -> Computed:
        """Calls `compute` in a graph with the weights as constants, unless they are too large.

        `used` are the variables that `compute` reads; None for all.
        """
        used = None if used is None else {id(weight) for weight in used}
        constants = [
            (weight, tf.constant(value))
            for weight, value in self._constants
            if used is None or id(weight) in used
        ]
        with keras.StatelessScope(state_mapping=constants):
            return compute()

    def from_rows(self, rows: Rows) -> dict[str, tf.Tensor]:
        """Returns the outputs for `rows`, in order, each [B, ...]; pads token outputs with 0."""
        lengths = rows.ids.row_lengths()  # [B]
        count, longest = tf.size(lengths), tf.reduce_max(lengths)
        longest = tf.maximum(tf.cast(longest, tf.int32), 1)
        order = tf.argsort(lengths, direction="DESCENDING", stable=True)  # [B]
        ordered = tf.concat([tf.cast(tf.gather(lengths, order), tf.int32), [1]], axis=0)
        outputs = self.run.get_concrete_function().structured_outputs
        arrays = {
            name: tf.TensorArray(
                output.dtype, 0, dynamic_size=True, infer_shape=False, element_shape=output.shape
            )
            for name, output in outputs.items()
        }

        def step(start, number, arrays):
            length = tf.maximum(ordered[start], 1)
            size = tf.maximum(CHUNK_PIECES // length, 1)
            batch = self._batch(rows, order[start : start + size], length)
            for name, output in self.run(batch).items():
                if name in self._token_outputs:
                    rest = [[0, 0]] * (len(output.shape) - 2)
                    output = tf.pad(output, [[0, 0], [0, longest - length], *rest])
                arrays = {**arrays, name: arrays[name].write(number, output)}
            return start + size, number + 1, arrays

        # Runs at least once, because without rows the outputs would have no shape.
        _, _, arrays = tf.while_loop(
            lambda start, number, arrays: (start < count) | (number == 0),
            step,
            (0, 0, arrays),
            parallel_iterations=1,
        )
        places = tf.math.invert_permutation(order)
        return {name: tf.gather(array.concat(), places) for name, array in arrays.items()}

    def _batch(self, rows, chosen, length):
        """Pads the chosen rows into a batch, a dict of int32 [R, T]."""
        ids = tf.gather(rows.ids, chosen)  # [R, (T)]
        places = tf.range(length, dtype=tf.int64)[tf.newaxis]  # [1, T]
        inside = places < ids.row_lengths()[:, tf.newaxis]  # [R, T]
        second = inside & (places >= tf.gather(rows.first_lengths, chosen)[:, tf.newaxis])
        return {
            "input_ids": ids.to_tensor(self._pad_id, shape=tf.stack([-1, length])),
            "input_mask": tf.cast(inside, tf.int32),
            "segment_ids": tf.cast(second, tf.int32),
        }
