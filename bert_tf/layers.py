"""The layers of a BERT encoder, shared by BERT and ALBERT.

Shapes: B batch, T tokens, N heads, D head size, H hidden, E embedding, I intermediate.

Every layer takes its sizes from the configuration and builds its sub-layers in `build`,
so that weights exist before any call. Only `keras.ops` is used: the layers trace under
XLA, and run on every Keras backend.
"""

import math

import keras
from keras import ops

# Added to the scores of masked keys: as bert/modeling.py, finite, so that a row that is
# masked throughout still has a softmax.
MASKED_SCORE = -10000.0

# Inside the square root; tf.contrib.layers.layer_norm, which google-research/bert calls.
LAYER_NORM_EPSILON = 1e-12


def gelu(x):
    """The tanh form of the Gaussian error linear unit (arXiv:1606.08415), as bert/modeling.py."""
    return ops.gelu(x, approximate=True)


ACTIVATIONS = {"linear": None, "relu": ops.relu, "gelu": gelu, "tanh": ops.tanh}


def activation(name):
    """The function of a configuration's `hidden_act`; None for "linear" and for an empty name."""
    return ACTIVATIONS[(name or "linear").lower()]


def initializer(config):
    """A truncated normal, cut at two standard deviations, as bert/modeling.py."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def dense(units, config, name, activation=None, dtype=None):
    """A projection `x @ kernel + bias` with the configuration's initial weights."""
    return keras.layers.Dense(
        units, activation=activation, kernel_initializer=initializer(config), name=name, dtype=dtype
    )


def layer_norm(dtype_policy, name="layer_norm"):
    """Layer normalisation over the last axis, in the precision of the weights.

    Under a mixed policy it returns float32, to be cast back. "layer_norm" in the name is what
    exempts its weights from weight decay.
    """
    return keras.layers.LayerNormalization(
        epsilon=LAYER_NORM_EPSILON, name=name, dtype=dtype_policy.variable_dtype
    )


def attention_bias(input_mask):
    """What is added to the attention scores so that padding is not attended to.

    Args:
        input_mask: [B, T] integers, 1 for a token and 0 for padding.

    Returns:
        [B, 1, 1, T] float32: 0 for a token, `MASKED_SCORE` for padding.
    """
    bias = (1.0 - ops.cast(input_mask, "float32")) * MASKED_SCORE  # [B, T]
    return bias[:, None, None, :]  # [B, 1, 1, T]


class Embeddings(keras.layers.Layer):
    """Word + token type + position, layer norm, dropout (BERT, arXiv:1810.04805, section 3).

    ALBERT does this at the narrow width E (arXiv:1909.11942, section 3.1).
    """

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.config = config
        self.layer_norm = layer_norm(self.dtype_policy)
        self.dropout = keras.layers.Dropout(
            config.hidden_dropout_prob, name="dropout", dtype=self.dtype_policy
        )

    def build(self, input_shape=None):
        c = self.config
        table = {"initializer": initializer(c), "trainable": True}
        self.word_embeddings = self.add_weight(
            name="word_embeddings", shape=(c.vocab_size, c.embedding_size), **table
        )
        self.token_type_embeddings = self.add_weight(
            name="token_type_embeddings", shape=(c.type_vocab_size, c.embedding_size), **table
        )
        self.position_embeddings = self.add_weight(
            name="position_embeddings", shape=(c.max_position_embeddings, c.embedding_size), **table
        )
        self.layer_norm.build((None, None, c.embedding_size))

    def call(self, input_ids, segment_ids, training=None):
        """[B, T] and [B, T] -> [B, T, E]."""
        length = input_ids.shape[1]
        words = ops.take(self.word_embeddings, input_ids, axis=0)  # [B, T, E]
        # A product with one-hot rows: as bert/modeling.py, an id outside the table adds
        # nothing, and the gradient is a dense sum instead of a scatter into two rows.
        one_hot = ops.one_hot(
            segment_ids, self.config.type_vocab_size, dtype=self.compute_dtype
        )  # [B, T, types]
        types = ops.matmul(one_hot, self.token_type_embeddings)  # [B, T, E]
        x = words + types + self.position_embeddings[:length]  # [B, T, E]
        return self.dropout(self.layer_norm(x), training=training)


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention without its output projection (arXiv:1706.03762, section 3.2)."""

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        self.hidden_size = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        self.query = dense(config.hidden_size, config, "query", dtype=self.dtype_policy)
        self.key = dense(config.hidden_size, config, "key", dtype=self.dtype_policy)
        self.value = dense(config.hidden_size, config, "value", dtype=self.dtype_policy)
        self.dropout = keras.layers.Dropout(
            config.attention_probs_dropout_prob, name="dropout", dtype=self.dtype_policy
        )

    def build(self, input_shape=None):
        for projection in (self.query, self.key, self.value):
            projection.build((None, None, self.hidden_size))

    def call(self, x, bias, training=None):
        """[B, T, H] and the `attention_bias` [B, 1, 1, T] -> [B, T, H]."""
        batch, length = ops.shape(x)[0], x.shape[1]

        def heads(y):
            y = ops.reshape(y, (batch, length, self.num_heads, self.head_size))  # [B, T, N, D]
            return ops.transpose(y, (0, 2, 1, 3))  # [B, N, T, D]

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))  # [B, N, T, T]
        # The softmax is computed in float32 at least, whatever the products are computed in.
        precise = keras.backend.result_type(scores.dtype, "float32")
        scores = ops.cast(scores, precise) / math.sqrt(self.head_size) + ops.cast(bias, precise)
        probabilities = ops.cast(ops.softmax(scores, axis=-1), self.compute_dtype)
        probabilities = self.dropout(probabilities, training=training)
        context = ops.matmul(probabilities, value)  # [B, N, T, D]
        context = ops.transpose(context, (0, 2, 1, 3))  # [B, T, N, D]
        return ops.reshape(context, (batch, length, self.hidden_size))  # [B, T, H]


class TransformerBlock(keras.layers.Layer):
    """Attention, then the feed-forward part, each with dropout, residual, layer norm after."""

    def __init__(self, config, **kwargs):
        super().__init__(**kwargs)
        policy = self.dtype_policy
        self.config = config
        self.attention = SelfAttention(config, name="attention", dtype=policy)
        self.attention_output = dense(config.hidden_size, config, "attention_output", dtype=policy)
        self.attention_dropout = keras.layers.Dropout(
            config.hidden_dropout_prob, name="attention_dropout", dtype=policy
        )
        self.attention_layer_norm = layer_norm(policy, "attention_layer_norm")
        self.intermediate = dense(
            config.intermediate_size,
            config,
            "intermediate",
            activation=activation(config.hidden_act),
            dtype=policy,
        )
        self.output_dense = dense(config.hidden_size, config, "output", dtype=policy)
        self.output_dropout = keras.layers.Dropout(
            config.hidden_dropout_prob, name="output_dropout", dtype=policy
        )
        self.output_layer_norm = layer_norm(policy, "output_layer_norm")

    def build(self, input_shape=None):
        hidden = (None, None, self.config.hidden_size)
        self.attention.build()
        self.attention_output.build(hidden)
        self.attention_layer_norm.build(hidden)
        self.intermediate.build(hidden)
        self.output_dense.build((None, None, self.config.intermediate_size))
        self.output_layer_norm.build(hidden)

    def call(self, x, bias, training=None):
        """[B, T, H] and the `attention_bias` [B, 1, 1, T] -> [B, T, H]."""
        y = self.attention_output(self.attention(x, bias, training=training))
        x = self.attention_layer_norm(x + self.attention_dropout(y, training=training))
        x = ops.cast(x, self.compute_dtype)
        y = self.output_dense(self.intermediate(x))  # [B, T, I] -> [B, T, H]
        x = self.output_layer_norm(x + self.output_dropout(y, training=training))
        return ops.cast(x, self.compute_dtype)
