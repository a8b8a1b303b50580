"""Computes the weights, operations and memory of a `TransformerBlock`, without importing Keras.

Shapes: B examples of T tokens, H hidden, I intermediate, N heads, Q queries.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it imports this module
    from bert_tf.config import EncoderConfig


class TransformerBlockCosts:
    """The costs of a block of any size, counted in the code of `bert_tf.layers.TransformerBlock`.

    The block inherits these members; estimates read them from its configuration's `block`.
    """

    # Arrays that a block keeps for its gradient: [B, T, H], [B, T, I] and [B, N, T, T].
    KEPT = {"hidden": 12, "intermediate": 4, "scores": 3}

    # Arrays that exist at the same time in attention and in the feed-forward part if none is kept.
    # They put BERT-base's estimates 7 and 12 % above the peaks measured on a CPU for 32 rows of 512
    # and of 128 in float32.
    IN_ATTENTION = {"hidden": 4, "scores": 2}
    IN_FEED_FORWARD = {"hidden": 3, "intermediate": 4}

    @staticmethod
    def count_weights(config: "EncoderConfig") -> int:
        """Counts the weights of a block."""
        h, i = config.hidden_size, config.intermediate_size
        return 4 * (h * h + h) + (h * i + i) + (i * h + h) + 4 * h

    @staticmethod
    def flops(config: "EncoderConfig", length: int, queries: int) -> int:
        """Counts the operations of a forward pass over T tokens with outputs at Q of them."""
        h = config.hidden_size
        # Per query: its projection, the projection after attention, both of the feed-forward part,
        # the scores with all keys and the weighted sum of the values.
        query = 4 * h * h + 4 * h * config.intermediate_size + 4 * length * h
        keys_and_values = 4 * h * h * length
        return queries * query + keys_and_values
