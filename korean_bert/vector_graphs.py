"""Makes the functions that `embed` computes with, anew after weights or layers were changed."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from finetuning.features.extraction import pooled_layers
from finetuning.serving.served_model import ServedModel

# The maximum number of functions to keep, as making one takes seconds.
MOST_GRAPHS = 4


class VectorGraphs:
    """The most recently used functions, one for each choice of layers and pooling.

    The first ones hold the weights of a small model as constants, which is faster. TensorFlow keeps
    the memory of these even if they are dropped, so that only `MOST_GRAPHS` are made, and none
    after a weight was changed.
    """

    def __init__(self, encoder: keras.Model) -> None:
        self._encoder = encoder
        # (layers, pooling) -> the function, most recently used last
        self._graphs: dict[tuple[tuple[int, ...], str], Any] = {}
        self._weights: list[keras.Variable] = []  # of the layers that the functions compute
        self._watch: WeightWatch | None = None  # while there may be functions with constants
        self._constants_left = MOST_GRAPHS

    def get(self, layers: tuple[int, ...], pooling: str, pad_id: int) -> Callable[..., Any]:
        """Returns the function of a batch to its vectors; only one thread may call it at a time."""
        self._drop_outdated()
        key = layers, pooling
        graph = self._graphs.pop(key, None)
        if graph is None:
            compute = functools.partial(pooled_layers, self._encoder, layers, pooling)
            are_fixed = self._constants_left > 0
            graph = ServedModel(self._encoder, compute, pad_id, are_fixed=are_fixed).run
            graph.get_concrete_function()  # traced once, by the first thread that needs it
            self._constants_left -= are_fixed
        self._graphs[key] = graph
        while len(self._graphs) > MOST_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        return graph

    def _drop_outdated(self):
        weights = self._encoder.weights
        if not same_objects(weights, self._weights):
            self._graphs.clear()
            self._weights = weights
            self._watch = WeightWatch(weights) if self._constants_left else None
        elif self._watch and self._watch.has_changed():
            self._graphs.clear()
            self._watch, self._constants_left = None, 0


class WeightWatch:
    """Compares a part of every weight with what it was when the watch was made.

    The part is large enough for any training and any change of a whole row or column to change it,
    and small enough to be read at every call: BERT-base takes 2 ms, a short text 31 ms.
    """

    def __init__(self, weights: Sequence[keras.Variable]) -> None:
        self._weights = weights
        self._read = tf.function(self._parts, autograph=False).get_concrete_function()
        self._seen = self._read().numpy().tobytes()

    def has_changed(self) -> bool:
        """Returns True if a weight was changed."""
        return self._read().numpy().tobytes() != self._seen  # bytes: NaN equals NaN

    def _parts(self):
        """Returns the values of vectors, and the first row and column of matrices."""
        parts = []
        for weight in self._weights:
            values = tf.convert_to_tensor(weight.value)
            both = [values[0], values[:, 0]] if len(values.shape) > 1 else [values]
            parts += [tf.reshape(tf.cast(part, tf.float32), [-1]) for part in both]
        return tf.concat(parts, axis=0)


def same_objects(weights: Sequence[Any], others: Sequence[Any]) -> bool:
    """Returns False if layers were replaced or got weights, as with LoRA."""
    return [*map(id, weights)] == [*map(id, others)]
