"""The layers of a BERT encoder, which ALBERT shares.

Every layer takes its sizes from the configuration and builds its sub-layers in `build`,
so that weights exist before any call. Only `keras.ops` is used, so the layers trace under
XLA and run on every Keras backend.

Two arguments of an encoder's `call` reach its blocks; a model with heads chooses `positions` and
passes `run_block` on:

    positions   [B, P] integers below T: the positions at which to compute the encoder's output.
                The last block computes only these rows (and [CLS]), as no later block reads the
                others; its keys and values still come from all tokens. None: everywhere, P = T.
    run_block   the function through which every block is called, with the arguments of
                `call_block`, the default. `infer_block` computes the output without dropout in the
                fastest way; `bert_tf.training.recompute.recompute_block` keeps only a block's
                input and recomputes the rest for the gradient.

Shapes: B batch, T tokens, N heads, D head size, H hidden, E embedding, I intermediate,
P positions, Q queries: P with the [CLS] tokens, or T.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from bert_tf.attention import attention
from bert_tf.block_costs import TransformerBlockCosts
from bert_tf.config import LAYER_NORM_EPSILON, EncoderConfig
from bert_tf.dropout import Dropout

# The shape of a tensor, with None for unknown dimensions.
Shape = tuple[int | None, ...]


def gelu(x: Any) -> Any:
    """Computes the tanh form of GELU (arXiv:1606.08415), as in bert/modeling.py.

    It is written as x * sigmoid(2u), which equals x * (1 + tanh(u)) / 2 in fewer passes over x.
    """
    two_u = x * (_TWO_ROOT + _TWO_ROOT * 0.044715 * ops.square(x))
    return x * ops.sigmoid(two_u)


_TWO_ROOT = 2.0 * math.sqrt(2.0 / math.pi)


def gelu_erf(x: Any) -> Any:
    """Computes the exact GELU, x * (1 + erf(x / sqrt(2))) / 2, which transformers calls "gelu".

    Keras computes it with erfc, which converters to ONNX lack. 1 + erf is computed in float32 at
    least, as it would be rounded to 0 in 16 bits for x about -3.
    """
    exact = ops.cast(x, keras.backend.result_type(x.dtype, "float32"))
    return ops.cast(0.5 * exact * (1.0 + ops.erf(exact * math.sqrt(0.5))), x.dtype)


ACTIVATIONS = {
    "linear": None,
    "relu": ops.relu,
    "gelu": gelu,  # Google's name for it
    "gelu_tanh": gelu,
    "gelu_erf": gelu_erf,
    "tanh": ops.tanh,
}


def activation_function(name: str | None) -> Callable[[Any], Any] | None:
    """Returns the activation of a `hidden_act`; None for "linear" and for an empty name."""
    return ACTIVATIONS[(name or "linear").lower()]


def initializer(config: EncoderConfig) -> keras.initializers.Initializer:
    """Returns a normal initializer truncated at two standard deviations, as in bert/modeling.py."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def dense(
    units: int,
    config: EncoderConfig,
    name: str,
    activation: Callable[[Any], Any] | str | None = None,
    dtype: Any = None,
) -> keras.layers.Dense:
    """Creates a layer `x @ kernel + bias` with the configuration's `initializer`."""
    return keras.layers.Dense(
        units, activation=activation, kernel_initializer=initializer(config), name=name, dtype=dtype
    )


class LayerNorm(keras.layers.Layer):
    """Layer normalization over the last axis (arXiv:1607.06450), in float32 or higher precision.

    Keras's own layer would get weights rounded to bfloat16 inside a model that computes in
    bfloat16. "layer_norm" in the name exempts the weights from weight decay.
    """

    def __init__(
        self,
        dtype_policy: keras.DTypePolicy,
        name: str = "layer_norm",
        epsilon: float = LAYER_NORM_EPSILON,
    ) -> None:
        # Compute in the precision of the weights, float32 under a mixed policy.
        super().__init__(name=name, dtype=dtype_policy.variable_dtype)
        self.epsilon = epsilon

    def build(self, input_shape: Shape) -> None:
        # autocast=False keeps the weights out of the surrounding model's precision.
        shape = {"shape": input_shape[-1:], "autocast": False}
        self.gamma = self.add_weight(name="gamma", initializer="ones", **shape)
        self.beta = self.add_weight(name="beta", initializer="zeros", **shape)

    def call(self, x: Any, residual: Any = None) -> Any:
        """Normalizes x, or x + residual: [..., H] each -> [..., H] in the weights' precision.

        The sum is also in that precision, as bfloat16 would drop a small change to a large value.
        """
        x = ops.cast(x, self.variable_dtype)
        if residual is not None:
            x = x + ops.cast(residual, self.variable_dtype)
        mean, variance = ops.moments(x, axes=-1, keepdims=True)  # [..., 1]
        return (x - mean) * (ops.rsqrt(variance + self.epsilon) * self.gamma) + self.beta


def gather_positions(x: Any, positions: Any) -> Any:
    """Gathers rows: [B, T, H] and [B, P] integers below T -> [B, P, H].

    The flat gather is many times faster on a CPU than one with a batch dimension. A row's gradient
    is summed in float32 at least, over all positions that refer to the row.
    """
    precise = keras.backend.result_type(x.dtype, "float32")
    batch, length, width = ops.shape(x)
    offsets = ops.arange(batch, dtype=positions.dtype) * length  # [B]
    flat = ops.reshape(positions + offsets[:, None], (-1,))  # [B * P]
    rows = ops.take(ops.reshape(ops.cast(x, precise), (-1, width)), flat, axis=0)  # [B * P, H]
    return ops.cast(ops.reshape(rows, (batch, ops.shape(positions)[1], width)), x.dtype)


class Embeddings(keras.layers.Layer):
    """Sums word, token type and position embeddings, then applies layer norm and dropout.

    BERT: arXiv:1810.04805, section 3. ALBERT uses the narrow width E (arXiv:1909.11942, section
    3.1). Computes in the precision of the weights: a row's gradient is a sum over all its tokens in
    the batch, which bfloat16 would round at every addition and which may overflow float16.
    """

    # Whether training leaves the three tables unchanged.
    is_frozen = False

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.layer_norm = LayerNorm(self.dtype_policy, epsilon=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob, name="dropout", dtype=self.dtype_policy)

    def build(self, input_shape: Shape | None = None) -> None:
        c = self.config
        # autocast=False keeps the tables out of the surrounding model's precision.
        table = {"initializer": initializer(c), "autocast": False}
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

    def call(
        self,
        input_ids: Any,
        segment_ids: Any,
        position_ids: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Embeds [B, T] inputs as [B, T, E]; position_ids default to 0, 1, 2, ..."""
        words = ops.take(self._used(self.word_embeddings), input_ids, axis=0)  # [B, T, E]
        # A product with one-hot rows, as in bert/modeling.py: an id outside the table adds
        # nothing, and the gradient is a dense sum instead of a scatter into two rows.
        count = self.config.type_vocab_size
        one_hot = ops.one_hot(segment_ids, count, dtype=self.variable_dtype)  # [B, T, types]
        types = ops.matmul(one_hot, self._used(self.token_type_embeddings))  # [B, T, E]
        table = self._used(self.position_embeddings)
        if position_ids is None:
            position_vectors = table[: ops.shape(input_ids)[1]]  # [T, E]
        else:
            position_vectors = ops.take(table, position_ids, axis=0)  # [B, T, E]
        x = words + types + position_vectors  # [B, T, E]
        return self.dropout(self.layer_norm(x), training=training)

    def _used(self, table):
        return ops.stop_gradient(table) if self.is_frozen else table


class SelfAttention(keras.layers.Layer):
    """Multi-head self-attention without its output projection (arXiv:1706.03762, section 3.2).

    Args:
        attention_function: computes each head's context: `bert_tf.attention.attention`, or a
            function with the same arguments.
    """

    def __init__(
        self,
        config: EncoderConfig,
        attention_function: Callable[..., Any] = attention,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        policy, rate = self.dtype_policy, config.attention_probs_dropout_prob
        self.hidden_size = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        self.attention_function = attention_function
        self.query = dense(config.hidden_size, config, "query", dtype=policy)
        self.key = dense(config.hidden_size, config, "key", dtype=policy)
        self.value = dense(config.hidden_size, config, "value", dtype=policy)
        # Never called; it only supplies the rate and the seeds for the attention function.
        self.dropout = Dropout(rate, name="dropout", dtype=policy)

    def build(self, input_shape: Shape | None = None) -> None:
        for projection in (self.query, self.key, self.value):
            projection.build((None, None, self.hidden_size))

    def call(
        self,
        queries: Any,
        x: Any,
        inputs: "BlockInputs",
        training: bool | None = None,
        return_probabilities: bool = False,
    ) -> Any:
        """Attends from the queries [B, Q, H], all or some rows of x, to all tokens of x [B, T, H].

        `inputs.bias` holds the queries' rows of the `attention_bias`, [B, 1, 1 or Q, T].

        Returns:
            [B, Q, H], and the probabilities [B, N, Q, T] if requested.
        """
        (batch, length), count = ops.shape(x)[:2], ops.shape(queries)[1]

        def heads(y, length):
            # [B, T, H] -> [B, N, T, D]; Q for T of the queries
            y = ops.reshape(y, (batch, length, self.num_heads, self.head_size))
            return ops.transpose(y, (0, 2, 1, 3))

        query, key = self.place(
            heads(self.query(queries), count), heads(self.key(x), length), inputs
        )
        context = self.attention_function(
            query,
            key,
            heads(self.value(x), length),
            inputs.bias,
            self.dropout.rate,
            self.dropout.next_seed(training),
            **({"return_probabilities": True} if return_probabilities else {}),
        )  # [B, N, Q, D]
        context, probabilities = context if return_probabilities else (context, None)
        context = ops.transpose(context, (0, 2, 1, 3))  # [B, Q, N, D]
        context = ops.reshape(context, (batch, count, self.hidden_size))  # [B, Q, H]
        return (context, probabilities) if return_probabilities else context

    def place(self, query: Any, key: Any, inputs: "BlockInputs") -> tuple[Any, Any]:
        """Adds positions to queries [B, N, Q, D] and keys [B, N, T, D], for rotary positions.

        Returns them unchanged here, as the embeddings already contain the positions.
        """
        return query, key


class BlockInputs(NamedTuple):
    """The inputs of a block besides the vectors [B, T, H]; a block reads the ones it needs."""

    bias: Any  # the `attention_bias`, [B, 1, 1 or T, T]
    position_ids: Any = None  # [B, T] integers, of packed rows; None: 0, 1, 2, ...
    positions: Any = None  # [B, Q] integers: the rows to compute; None: all of them, Q = T


class TransformerBlock(TransformerBlockCosts, keras.layers.Layer):
    """Attention and a feed-forward part, each followed by dropout, residual and layer norm.

    Takes the arguments of `SelfAttention`.
    """

    attention_class = SelfAttention

    def __init__(
        self,
        config: EncoderConfig,
        attention_function: Callable[..., Any] = attention,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        policy, rate = self.dtype_policy, config.hidden_dropout_prob
        self.config = config
        self.attention = self.attention_class(
            config, attention_function, name="attention", dtype=policy
        )
        self.attention_output = dense(config.hidden_size, config, "attention_output", dtype=policy)
        self.attention_dropout = Dropout(rate, name="attention_dropout", dtype=policy)
        epsilon = config.layer_norm_eps
        self.attention_layer_norm = LayerNorm(policy, "attention_layer_norm", epsilon)
        activation = activation_function(config.hidden_act)
        self.intermediate = dense(
            config.intermediate_size, config, "intermediate", activation, policy
        )
        self.output_dense = dense(config.hidden_size, config, "output", dtype=policy)
        self.output_dropout = Dropout(rate, name="output_dropout", dtype=policy)
        self.output_layer_norm = LayerNorm(policy, "output_layer_norm", epsilon)

    def build(self, input_shape: Shape | None = None) -> None:
        hidden = (None, None, self.config.hidden_size)
        self.attention.build()
        self.attention_output.build(hidden)
        self.attention_layer_norm.build(hidden)
        self.intermediate.build(hidden)
        self.output_dense.build((None, None, self.config.intermediate_size))
        self.output_layer_norm.build(hidden)

    def call(
        self,
        x: Any,
        inputs: BlockInputs,
        training: bool | None = None,
        return_probabilities: bool = False,
    ) -> Any:
        """Runs the block on x [B, T, H], at all positions or at `inputs.positions`.

        Returns:
            [B, Q, H], and the attention probabilities [B, N, Q, T] if requested.
        """
        queries, bias, positions = x, inputs.bias, inputs.positions
        if positions is not None:
            queries = gather_positions(x, positions)  # [B, Q, H]
            if bias.shape[2] != 1:
                bias = gather_positions(bias[:, 0], positions)[:, None]  # [B, 1, Q, T]
                inputs = inputs._replace(bias=bias)
        options = {"training": training, "return_probabilities": return_probabilities}
        context = self.attention(queries, x, inputs, **options)  # [B, Q, H]
        context, probabilities = context if return_probabilities else (context, None)
        y = self.attention_output(context)  # [B, Q, H]
        x = self.attention_layer_norm(self.attention_dropout(y, training=training), queries)
        x = ops.cast(x, self.compute_dtype)
        y = self.feed_forward(x)  # [B, Q, H]
        x = self.output_layer_norm(self.output_dropout(y, training=training), x)
        x = ops.cast(x, self.compute_dtype)
        return (x, probabilities) if return_probabilities else x

    def feed_forward(self, x: Any) -> Any:
        """Applies the feed-forward part: [B, Q, H] -> [B, Q, H]."""
        return self.output_dense(self.intermediate(x))  # over [B, Q, I]

    def infer(self, x: Any, inputs: BlockInputs) -> Any:
        """Computes `call` without dropout, in operations that TensorFlow fuses on a CPU."""
        if keras.backend.backend() != "tensorflow":
            return self(x, inputs, training=False)
        from bert_tf.fused_block import fused_block

        return fused_block(self, x, inputs)


def call_block(
    block: keras.layers.Layer, x: Any, inputs: BlockInputs, training: bool | None = None
) -> Any:
    """Calls a block on x [B, T, H], keeping arrays for the gradient; the default `run_block`."""
    return block(x, inputs, training=training)


def infer_block(
    block: keras.layers.Layer, x: Any, inputs: BlockInputs, training: bool | None = None
) -> Any:
    """Runs a block without dropout, with `infer` if its own class defines it, else with `call`.

    An inherited `infer` is not used because a subclass may compute something else.
    """
    if "infer" in vars(type(block)):
        return block.infer(x, inputs)
    return block(x, inputs, training=False)
