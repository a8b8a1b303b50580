"""The layers of a BERT encoder, which ALBERT shares.

Every layer takes its sizes from the configuration and builds its sub-layers in `build`,
so that weights exist before any call. Only `keras.ops` is used: the layers trace under
XLA, and run on every Keras backend.

Two arguments of an encoder's `call` reach its blocks; a model with heads chooses `positions` and
hands `run_block` on:

    positions   [B, P] integers below T: where the encoder's output is wanted. The last block, which
                nothing but the output reads, then computes these rows alone (and [CLS]); its keys
                and values still come from all tokens. None: everywhere, P = T.
    run_block   the function that every block is called through, with the arguments of `call_block`,
                the default. `infer_block` has a block compute its output without dropout, in
                whatever way is fastest; `bert_tf.training.recompute.recompute_block` keeps only a
                block's input, and computes the rest again for the gradient.

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

# Of a tensor; None for a dimension that is not known yet.
Shape = tuple[int | None, ...]


def gelu(x: Any) -> Any:
    """The tanh form of the Gaussian error linear unit (arXiv:1606.08415), as bert/modeling.py.

    Written x * sigmoid(2u), which equals x * (1 + tanh(u)) / 2 and is fewer passes over x.
    """
    two_u = x * (_TWO_ROOT + _TWO_ROOT * 0.044715 * ops.square(x))
    return x * ops.sigmoid(two_u)


_TWO_ROOT = 2.0 * math.sqrt(2.0 / math.pi)


def gelu_erf(x: Any) -> Any:
    """The exact form, x * (1 + erf(x / sqrt(2))) / 2, which transformers calls "gelu".

    Keras writes it with erfc, which converters to ONNX lack. 16 bits are too few for 1 + erf: where
    x is about -3 they would round all of it away.
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
    """The function of a configuration's `hidden_act`; None for "linear" and for an empty name."""
    return ACTIVATIONS[(name or "linear").lower()]


def initializer(config: EncoderConfig) -> keras.initializers.Initializer:
    """A truncated normal, cut at two standard deviations, as bert/modeling.py."""
    return keras.initializers.TruncatedNormal(stddev=config.initializer_range)


def dense(
    units: int,
    config: EncoderConfig,
    name: str,
    activation: Callable[[Any], Any] | str | None = None,
    dtype: Any = None,
) -> keras.layers.Dense:
    """A projection `x @ kernel + bias` with the configuration's initial weights."""
    return keras.layers.Dense(
        units, activation=activation, kernel_initializer=initializer(config), name=name, dtype=dtype
    )


class LayerNorm(keras.layers.Layer):
    """Layer normalization over the last axis (arXiv:1607.06450), in float32 at least.

    Keras's own, inside a model that computes in bfloat16, is given weights that were rounded to
    bfloat16. "layer_norm" in the name is what exempts its weights from weight decay.
    """

    def __init__(
        self,
        dtype_policy: keras.DTypePolicy,
        name: str = "layer_norm",
        epsilon: float = LAYER_NORM_EPSILON,
    ) -> None:
        # The precision of the weights: float32 under a mixed policy.
        super().__init__(name=name, dtype=dtype_policy.variable_dtype)
        self.epsilon = epsilon

    def build(self, input_shape: Shape) -> None:
        # autocast=False: the precision of the model around it is not for these.
        shape = {"shape": input_shape[-1:], "autocast": False}
        self.gamma = self.add_weight(name="gamma", initializer="ones", **shape)
        self.beta = self.add_weight(name="beta", initializer="zeros", **shape)

    def call(self, x: Any, residual: Any = None) -> Any:
        """Normalises x, or the sum of both: [..., H] each -> [..., H] in the weights' precision.

        The sum, too, is in that precision: bfloat16 would drop a small change of a large value.
        """
        x = ops.cast(x, self.variable_dtype)
        if residual is not None:
            x = x + ops.cast(residual, self.variable_dtype)
        mean, variance = ops.moments(x, axes=-1, keepdims=True)  # [..., 1]
        return (x - mean) * (ops.rsqrt(variance + self.epsilon) * self.gamma) + self.beta


def gather_positions(x: Any, positions: Any) -> Any:
    """[B, T, H] and [B, P] integers below T -> [B, P, H].

    A flat gather: on a CPU many times faster than one with a batch dimension. The gradient of a
    row is a sum over all positions that name it, added up in float32 at least.
    """
    precise = keras.backend.result_type(x.dtype, "float32")
    batch, length, width = ops.shape(x)
    offsets = ops.arange(batch, dtype=positions.dtype) * length  # [B]
    flat = ops.reshape(positions + offsets[:, None], (-1,))  # [B * P]
    rows = ops.take(ops.reshape(ops.cast(x, precise), (-1, width)), flat, axis=0)  # [B * P, H]
    return ops.cast(ops.reshape(rows, (batch, ops.shape(positions)[1], width)), x.dtype)


class Embeddings(keras.layers.Layer):
    """Word + token type + position, layer norm, dropout (BERT, arXiv:1810.04805, section 3).

    ALBERT does this at the narrow width E (arXiv:1909.11942, section 3.1). In the precision of
    the weights: a row's gradient is a sum over all tokens of the batch that have it, which
    bfloat16 would round at every addition and float16 has no room for.
    """

    # Whether a training leaves the three tables as they are.
    is_frozen = False

    def __init__(self, config: EncoderConfig, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config
        self.layer_norm = LayerNorm(self.dtype_policy, epsilon=config.layer_norm_eps)
        self.dropout = Dropout(config.hidden_dropout_prob, name="dropout", dtype=self.dtype_policy)

    def build(self, input_shape: Shape | None = None) -> None:
        c = self.config
        # autocast=False: the precision of the model around them is not for these.
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
        """[B, T] each -> [B, T, E]; without position_ids they are 0, 1, 2, ..."""
        words = ops.take(self._used(self.word_embeddings), input_ids, axis=0)  # [B, T, E]
        # A product with one-hot rows: as bert/modeling.py, an id outside the table adds
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
        attention_function: what computes each head's context: `bert_tf.attention.attention`, or a
            function with its arguments.
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
        # Not called: its rate and its seeds are the attention function's arguments.
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

        The bias of the inputs has the queries' rows of the `attention_bias`, [B, 1, 1 or Q, T].

        Returns:
            [B, Q, H]; with the probabilities [B, N, Q, T] if asked for.
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
        """Tells queries [B, N, Q, D] and keys [B, N, T, D] where they are: rotary positions do.

        Here the embeddings have told it already.
        """
        return query, key


class BlockInputs(NamedTuple):
    """What a block is given besides the vectors [B, T, H]; it reads what it needs."""

    bias: Any  # the `attention_bias`, [B, 1, 1 or T, T]
    position_ids: Any = None  # [B, T] integers, of packed rows; None: 0, 1, 2, ...
    positions: Any = None  # [B, Q] integers: the rows to compute; None: all of them, Q = T


class TransformerBlock(TransformerBlockCosts, keras.layers.Layer):
    """Attention, then the feed-forward part; after each: dropout, residual, layer norm.

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
        """Runs the block on x [B, T, H], at every position or at some.

        Returns:
            [B, Q, H]; with the probabilities of attention [B, N, Q, T] if asked for.
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
        """[B, Q, H] -> [B, Q, H]."""
        return self.output_dense(self.intermediate(x))  # over [B, Q, I]

    def infer(self, x: Any, inputs: BlockInputs) -> Any:
        """The output of `call` without dropout, in operations that TensorFlow fuses on a CPU."""
        if keras.backend.backend() != "tensorflow":
            return self(x, inputs, training=False)
        from bert_tf.fused_block import fused_block

        return fused_block(self, x, inputs)


def call_block(
    block: keras.layers.Layer, x: Any, inputs: BlockInputs, training: bool | None = None
) -> Any:
    """Calls a block on x [B, T, H], keeping what its gradient needs: the default `run_block`."""
    return block(x, inputs, training=training)


def infer_block(
    block: keras.layers.Layer, x: Any, inputs: BlockInputs, training: bool | None = None
) -> Any:
    """A block's output without dropout: by the `infer` of its own class, else by its `call`.

    An inherited `infer` is not asked: a subclass may compute something else.
    """
    if "infer" in vars(type(block)):
        return block.infer(x, inputs)
    return block(x, inputs, training=False)
