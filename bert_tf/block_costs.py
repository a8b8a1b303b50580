"""What a `bert_tf.layers.TransformerBlock` costs: weights, operations, memory; without Keras.

Shapes: B examples of T tokens, H hidden, I intermediate, N heads, Q queries.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # it imports this module
    from bert_tf.config import EncoderConfig


class TransformerBlockCosts:
    """The block's costs, counted in its code, for a configuration of any size.

    The block has these members, and so has its configuration, as `block`: estimates ask them.
    """

    # Arrays that it keeps for its gradient: [B, T, H], [B, T, I] and [B, N, T, T].
    KEPT = {"hidden": 12, "intermediate": 4, "scores": 3}

    # Arrays that it holds at a time where nothing is kept, in attention and in the feed-forward
    # part. With them BERT-base's estimates are 7 and 12 % above the peaks measured on a CPU, 32
    # rows of 512 and of 128 in float32.
    IN_ATTENTION = {"hidden": 4, "scores": 2}
    IN_FEED_FORWARD = {"hidden": 3, "intermediate": 4}

    @staticmethod
    def shapes(config: "EncoderConfig") -> dict[str, list[int]]:
        """Shapes that tell the sizes of a block in a file, by our names of weights inside it."""
        return {"intermediate/kernel": [config.hidden_size, config.intermediate_size]}

    @staticmethod
    def count_weights(config: "EncoderConfig") -> int:
        """Counts the weights of a block."""
        h, i = config.hidden_size, config.intermediate_size
        return 4 * (h * h + h) + (h * i + i) + (i * h + h) + 4 * h

    @staticmethod
    def flops(config: "EncoderConfig", length: int, queries: int) -> int:
        """The operations of a forward pass over T tokens whose output is computed at Q of them."""
        h = config.hidden_size
        # Of a query: its projection, the one after attention, the two of the feed-forward part; its
        # scores with all keys, and the sum of the values.
        query = 4 * h * h + 4 * h * config.intermediate_size + 4 * length * h
        keys_and_values = 4 * h * h * length
        return queries * query + keys_and_values
