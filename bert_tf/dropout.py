"""Dropout that computes its random numbers as integer hashes of the units' indices."""

import math
from typing import Any

import keras
from keras import ops


class Dropout(keras.layers.Layer):
    """Inverted dropout that draws a new seed for every call; see `dropout`."""

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.seed_generator = keras.random.SeedGenerator()
        self.built = True  # as Keras's own: it has no weights, and attention never calls it

    def next_seed(self, training: bool | None) -> Any:
        """Returns the seed of the next call, two integers; None if dropout is off."""
        return self.seed_generator.next() if training and self.rate else None

    def call(self, x: Any, training: bool | None = None) -> Any:
        """Applies `dropout` to `x` while training."""
        return dropout(x, self.rate, self.next_seed(training))


def dropout(x: Any, rate: float, seed: Any, rows: Any = None) -> Any:
    """Zeroes units of `x` at the given rate and scales up the others.

    Keras's own dropout uses Philox, whose random numbers XLA on a CPU computes one by one, several
    times per mask. A hash is a few integer operations that fuse with their surroundings, forward
    and backward, so the mask need not be kept.

    Args:
        x: [..., W], a tensor of any rank above 0.
        rate: the probability that a unit becomes 0, in [0, 1).
        seed: two integers; None returns `x` unchanged.
        rows: [...] int32, the row numbers of `x` in a larger tensor, so that a part gets its part
            of the whole mask; None: `x` is the whole tensor, with the rows 0, 1, 2, ...
    """
    if seed is None:
        return x
    if rows is None:
        shape = ops.shape(x)[:-1]
        rows = ops.reshape(ops.arange(math.prod(shape), dtype="int32"), shape)  # [...]
    bits = random_bits(rows, x.shape[-1], seed)
    threshold = ops.convert_to_tensor(round(rate * 2**32), "uint32")
    kept = ops.greater_equal(bits, threshold)
    return ops.where(kept, x * (1.0 / (1.0 - rate)), ops.zeros((), x.dtype))


def random_bits(rows: Any, width: int, seed: Any) -> Any:
    """Hashes each element of the given rows to a 32-bit word, with a seed of two integers.

    Mixes like Mueller's and Wellons's 32-bit finalizers (multiply, xor with the upper half), with
    the seed's two words in between. `rows` are row numbers, [...] int32. The words, [..., width]
    uint32, depend only on the seed and on row * width + column.
    """
    seed = ops.cast(seed, "uint32")

    def word(number):
        return ops.convert_to_tensor(number, "uint32")

    def fold(x, bits):
        return ops.bitwise_xor(x, ops.right_shift(x, word(bits)))

    def mix(x, more):
        x = fold(fold(x, 16) * word(0x7FEB352D) + more, 15)
        return fold(x * word(0x846CA68B), 16)

    # The seed is mixed first: the calls of a shared block have consecutive seeds, whose masks would
    # otherwise be shifted copies of each other.
    key = mix(ops.bitwise_xor(mix(seed[1], word(0x9E3779B1)), seed[0]), seed[1])
    # Two short ranges, because outside XLA TensorFlow creates a range on the host, and copying one
    # number per element to a GPU would take longer than the hash.
    columns = ops.cast(ops.arange(width, dtype="int32"), "uint32")  # [width]
    x = ops.cast(rows, "uint32")[..., None] * word(width) + columns  # [..., width]
    return mix(ops.bitwise_xor(x * word(0x9E3779B1), key), seed[1])
