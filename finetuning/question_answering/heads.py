"""The heads that find an answer in a text, on BERT and ALBERT alike.

As google-research/bert run_squad.py (google-research/albert run_squad_v1.py has the same head),
and as google-research/albert run_squad_v2.py, where the end depends on the start.

Shapes: B batch, T tokens, H hidden, K starts and J ends of each that a beam keeps.
"""

import keras
from keras import ops

from bert_tf.dropout import Dropout
from bert_tf.encoder import EncoderModel
from bert_tf.layers import LayerNorm, call_block, gather_positions, initializer
from bert_tf.objective import Loss, Objective
from bert_tf.pretraining import cross_entropy

# Our variables (path below the model's own name) and Google's.
SPAN_NAMES = {
    "head/output_weights": "cls/squad/output_weights",
    "head/output_bias": "cls/squad/output_bias",
}
BEAM_NAMES = {
    "head/start_kernel": "start_logits/dense/kernel",
    "head/start_bias": "start_logits/dense/bias",
    "head/end_hidden_kernel": "end_logits/dense_0/kernel",
    "head/end_hidden_bias": "end_logits/dense_0/bias",
    "head/end_layer_norm/gamma": "end_logits/LayerNorm/gamma",
    "head/end_layer_norm/beta": "end_logits/LayerNorm/beta",
    "head/end_kernel": "end_logits/dense_1/kernel",
    "head/end_bias": "end_logits/dense_1/bias",
    "head/answerable_hidden_kernel": "answer_class/dense_0/kernel",
    "head/answerable_hidden_bias": "answer_class/dense_0/bias",
    "head/answerable_kernel": "answer_class/dense_1/kernel",
}

# As both reference repositories: not the configuration's initializer_range.
INITIAL_STDDEV = 0.02

# As google-research/albert: how many starts are followed, and how many ends of each.
START_N_TOP = 5
END_N_TOP = 5

# As google-research/albert run_squad_v2.py: before the last projection of answerability.
DROPOUT = 0.1

# Of positions where no answer may be, as google-research/albert.
MASKED_LOGIT = 1e30

# The losses of the objectives, by name.
SPAN_LOSSES = {"span": Loss(labels=("start_positions", "end_positions"), weights="span_weights")}
BEAM_LOSSES = {
    **SPAN_LOSSES,
    "answerable": Loss(labels=("is_impossible",), weights="span_weights"),
}


class SpanHead(keras.layers.Layer):
    """A projection to two logits a token, start and end, whose weights are [2, H] as Google's.

    In float32 at least: in bfloat16 a logit of 4 has neighbours 0.03 away.
    """

    def __init__(self, hidden_size, dtype_policy, name):
        # The precision of the weights: float32 under a mixed policy.
        super().__init__(name=name, dtype=dtype_policy.variable_dtype)
        self.hidden_size = hidden_size

    def build(self, input_shape=None):
        # autocast=False: the precision of the model around it is not for these.
        self.output_weights = self.add_weight(
            name="output_weights",
            shape=(2, self.hidden_size),
            initializer=keras.initializers.TruncatedNormal(stddev=INITIAL_STDDEV),
            autocast=False,
        )
        self.output_bias = self.add_weight(
            name="output_bias", shape=(2,), initializer="zeros", autocast=False
        )

    def call(self, x):
        """[B, T, H] -> [B, T] of starts and [B, T] of ends."""
        x = ops.cast(x, self.variable_dtype)
        logits = ops.matmul(x, ops.transpose(self.output_weights)) + self.output_bias  # [B, T, 2]
        return logits[..., 0], logits[..., 1]


class BeamSpanHead(keras.layers.Layer):
    """Starts, ends that depend on a start, and whether there is an answer.

    The end's logit of a token is made from its vector beside that of the start: x and s in
    tanh([x, s] W + b). That is x W1 + s W2 + b, so that x W1 is computed once for all starts.
    """

    def __init__(self, config, dropout, dtype_policy, name):
        super().__init__(name=name, dtype=dtype_policy)
        self.config = config
        self.end_layer_norm = LayerNorm(dtype_policy, "end_layer_norm")
        self.dropout = Dropout(dropout, name="dropout", dtype=dtype_policy.variable_dtype)

    def build(self, input_shape=None):
        size = self.config.hidden_size

        def add(name, *shape):
            # autocast=False: the precision of the model around them is not for these.
            start = "zeros" if len(shape) == 1 else initializer(self.config)
            return self.add_weight(name=name, shape=shape, initializer=start, autocast=False)

        self.start_kernel, self.start_bias = add("start_kernel", size, 1), add("start_bias", 1)
        self.end_hidden_kernel = add("end_hidden_kernel", 2 * size, size)
        self.end_hidden_bias = add("end_hidden_bias", size)
        self.end_layer_norm.build((None, None, size))
        self.end_kernel, self.end_bias = add("end_kernel", size, 1), add("end_bias", 1)
        self.answerable_hidden_kernel = add("answerable_hidden_kernel", 2 * size, size)
        self.answerable_hidden_bias = add("answerable_hidden_bias", size)
        self.answerable_kernel = add("answerable_kernel", size, 1)

    def starts(self, x, p_mask):
        """The logits of starts: [B, T, H] and [B, T] -> [B, T], masked, in float32 at least."""
        x = ops.cast(x, self.variable_dtype)
        return masked(ops.matmul(x, self.start_kernel)[..., 0] + self.start_bias, p_mask)

    def ends(self, x, positions, p_mask):
        """The logits of ends after some starts.

        Args:
            x: [B, T, H].
            positions: [B, K] integers: the starts.
            p_mask: [B, T].

        Returns:
            [B, K, T], masked, in float32 at least.
        """
        size = self.config.hidden_size
        # The only large products of this head: in the precision of the model's own.
        kernel = ops.cast(self.end_hidden_kernel, self.compute_dtype)  # [2H, H]
        x = ops.cast(x, self.compute_dtype)
        of_token = ops.matmul(x, kernel[:size])  # [B, T, H]
        of_start = ops.matmul(gather_positions(x, positions), kernel[size:])  # [B, K, H]
        hidden = of_token[:, None] + of_start[:, :, None]  # [B, K, T, H]
        hidden = ops.tanh(ops.cast(hidden, self.variable_dtype) + self.end_hidden_bias)
        hidden = self.end_layer_norm(hidden)
        logits = ops.matmul(hidden, self.end_kernel)[..., 0] + self.end_bias  # [B, K, T]
        return masked(logits, p_mask[:, None])

    def answerable(self, x, start_logits, training=None):
        """The logit of there being no answer: [B, T, H] and [B, T] -> [B]."""
        x = ops.cast(x, self.variable_dtype)
        weights = ops.softmax(start_logits, axis=-1)[:, None]  # [B, 1, T]
        start = ops.matmul(weights, x)[:, 0]  # [B, H]
        hidden = ops.concatenate([start, x[:, 0]], axis=-1)  # [B, 2H]
        hidden = ops.matmul(hidden, self.answerable_hidden_kernel) + self.answerable_hidden_bias
        hidden = self.dropout(ops.tanh(hidden), training=training)
        return ops.matmul(hidden, self.answerable_kernel)[:, 0]  # [B]


def masked(logits, p_mask):
    """Logits where p_mask is 0, and -1e30 where it is 1."""
    p_mask = ops.cast(p_mask, logits.dtype)
    return logits * (1.0 - p_mask) - MASKED_LOGIT * p_mask


@keras.saving.register_keras_serializable(package="finetuning")
class SpanModel(EncoderModel):
    """An encoder with the head of BERT, and of ALBERT for SQuAD 1.1.

    `load_google_checkpoint(model.encoder, prefix)` starts from a pre-trained encoder,
    `load_google_checkpoint(model, prefix)` takes the head along.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.

    Example:
        model = SpanModel(BertModel(config))
        start_logits = model({"input_ids": ids, "segment_ids": types})["start_logits"]
    """

    google_names = SPAN_NAMES

    def __init__(self, encoder, name="spans", **kwargs):
        super().__init__(encoder, name, **kwargs)
        self.head = SpanHead(self.config.hidden_size, self.dtype_policy, name="head")
        self.build()

    def build(self, input_shape=None):
        self.head.build()

    @property
    def objective(self):
        """The mean of the cross entropies of start and end."""
        return Objective(SPAN_LOSSES, span_sums)

    def call(self, inputs, training=None, run_block=call_block):
        """Runs the encoder with the head.

        Args:
            inputs: the encoder's inputs, a dict of [B, T] integers; packed rows have no place here.
            training: whether dropout is on.
            run_block: see `bert_tf.layers`.

        Returns:
            A dict: "start_logits" and "end_logits" [B, T] in float32 at least.
        """
        x = self.encoder(inputs, training=training, run_block=run_block)["sequence_output"]
        start_logits, end_logits = self.head(x)
        return {"start_logits": start_logits, "end_logits": end_logits}


@keras.saving.register_keras_serializable(package="finetuning")
class BeamSpanModel(EncoderModel):
    """An encoder with ALBERT's head for SQuAD 2.0.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.
        start_n_top: K.
        end_n_top: J.
        dropout: the rate of dropout inside the part that tells whether there is an answer.

    Example:
        model = BeamSpanModel(AlbertModel(config))
        beams = model({"input_ids": ids, "segment_ids": types, "p_mask": p_mask})
    """

    google_names = BEAM_NAMES

    def __init__(
        self,
        encoder,
        start_n_top=START_N_TOP,
        end_n_top=END_N_TOP,
        dropout=DROPOUT,
        name="beam_spans",
        **kwargs,
    ):
        super().__init__(encoder, name, **kwargs)
        self.start_n_top, self.end_n_top = start_n_top, end_n_top
        self.head = BeamSpanHead(self.config, dropout, self.dtype_policy, name="head")
        self.build()

    def build(self, input_shape=None):
        self.head.build()

    @property
    def objective(self):
        """Half of each of three cross entropies: start, end, whether there is an answer."""
        return Objective(BEAM_LOSSES, beam_sums)

    def call(self, inputs, training=None, run_block=call_block):
        """Runs the encoder with the head.

        Args:
            inputs: the encoder's inputs with p_mask, a dict of [B, T] integers; p_mask is 1 where
                no answer may be. With start_positions [B] ends are those after these starts;
                without it they are searched for after the best starts.
            training: whether dropout is on.
            run_block: see `bert_tf.layers`.

        Returns:
            A dict in float32 at least: "cls_logits" [B], the higher the less likely is an answer.
            With start_positions also "start_logits" and "end_logits" [B, T]. Without it
            "start_top_log_probs" and "start_top_index" [B, K], "end_top_log_probs" and
            "end_top_index" [B, K * J], the ends of the first start first.
        """
        x = self.encoder(inputs, training=training, run_block=run_block)["sequence_output"]
        p_mask = inputs["p_mask"]
        start_logits = self.head.starts(x, p_mask)
        outputs = {"cls_logits": self.head.answerable(x, start_logits, training=training)}
        if "start_positions" in inputs:
            positions = inputs["start_positions"][:, None]  # [B, 1]
            end_logits = self.head.ends(x, positions, p_mask)[:, 0]  # [B, T]
            return {**outputs, "start_logits": start_logits, "end_logits": end_logits}
        # A row may be shorter than a beam is wide.
        starts, ends = (min(n, x.shape[1]) for n in (self.start_n_top, self.end_n_top))
        top, index = ops.top_k(ops.log_softmax(start_logits), starts)  # [B, K]
        end_logits = ops.log_softmax(self.head.ends(x, index, p_mask))  # [B, K, T]
        end_top, end_index = ops.top_k(end_logits, ends)  # [B, K, J]
        flat = (-1, starts * ends)
        return {
            **outputs,
            "start_top_log_probs": top,
            "start_top_index": index,
            "end_top_log_probs": ops.reshape(end_top, flat),
            "end_top_index": ops.reshape(end_index, flat),
        }

    def get_config(self):
        return {
            **super().get_config(),
            "start_n_top": self.start_n_top,
            "end_n_top": self.end_n_top,
            "dropout": self.head.dropout.rate,
        }


def span_losses(outputs, batch):
    """The loss of every example's answer, in float32 at least.

    Args:
        outputs: what `SpanModel` returns, or `BeamSpanModel` with start_positions.
        batch: start_positions and end_positions [B].

    Returns:
        [B].
    """
    start = cross_entropy(batch["start_positions"], outputs["start_logits"])
    return (start + cross_entropy(batch["end_positions"], outputs["end_logits"])) * 0.5


def answerable_losses(outputs, batch):
    """Half the cross entropy of there being no answer: is_impossible [B] -> [B]."""
    logits = outputs["cls_logits"]
    labels = ops.cast(batch["is_impossible"], logits.dtype)
    return ops.binary_crossentropy(labels, logits, from_logits=True) * 0.5


def span_sums(outputs, batch):
    """Sums from which loss and accuracy follow, however the batch was split.

    Args:
        outputs: as for `span_losses`.
        batch: start_positions, end_positions and span_weights [B].

    Returns:
        A dict of scalars: "span_loss", "span_correct" (both ends are right), "span_weight".
    """
    right = [
        ops.equal(ops.cast(batch[f"{end}_positions"], "int32"), _argmax(outputs[f"{end}_logits"]))
        for end in ("start", "end")
    ]
    return _sums("span", span_losses(outputs, batch), ops.logical_and(*right), batch)


def beam_sums(outputs, batch):
    """As `span_sums`, with is_impossible [B]: also "answerable_loss" and so on."""
    right = ops.equal(outputs["cls_logits"] > 0, ops.cast(batch["is_impossible"], "bool"))
    losses = answerable_losses(outputs, batch)
    return {**span_sums(outputs, batch), **_sums("answerable", losses, right, batch)}


def _argmax(logits):
    return ops.cast(ops.argmax(logits, axis=-1), "int32")


def _sums(name, losses, correct, batch):
    weights = ops.cast(batch["span_weights"], losses.dtype)
    return {
        f"{name}_loss": ops.sum(losses * weights),
        f"{name}_correct": ops.sum(ops.cast(correct, losses.dtype) * weights),
        f"{name}_weight": ops.sum(weights),
    }
