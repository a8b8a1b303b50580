"""Defines ALBERT's head for SQuAD 2.0, a beam search in which ends depend on starts.

As in google-research/albert run_squad_v2.py; the encoder may be BERT or ALBERT.

Shapes: B batch, T tokens, H hidden, K starts kept by the beam, J ends kept per start.
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from bert_tf.config import EncoderConfig
from bert_tf.distillation import soft_binary_divergence
from bert_tf.dropout import Dropout
from bert_tf.layers import LayerNorm, call_block, gather_positions, initializer
from bert_tf.objective import Loss, Objective, SoftLoss, weighted_sums
from finetuning.heads import HeadModel
from finetuning.question_answering.span_head import SPAN_LOSSES, soft_spans, span_sums

# Our variables (paths below the model's own name) -> Google's.
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

# The number of starts that the beam keeps, and of ends per start, as in google-research/albert.
START_N_TOP = 5
END_N_TOP = 5

# The dropout rate before the last projection for answerability, as in google-research/albert.
DROPOUT = 0.1

# Subtracted where no answer is allowed, as in google-research/albert.
MASKED_LOGIT = 1e30

# The losses of the objective, by name.
BEAM_LOSSES = {
    **SPAN_LOSSES,
    "answerable": Loss(labels=("is_impossible",), weights="span_weights"),
}


class BeamSpanHead(keras.layers.Layer):
    """Computes logits of starts, of ends given a start, and of answerability.

    The end logit of a token depends on its vector x and the vector s of the start, through
    tanh([x, s] W + b). As [x, s] W = x W1 + s W2, x W1 is computed once for all starts.
    """

    def __init__(
        self, config: EncoderConfig, dropout: float, dtype_policy: keras.DTypePolicy, name: str
    ) -> None:
        super().__init__(name=name, dtype=dtype_policy)
        self.config = config
        self.end_layer_norm = LayerNorm(dtype_policy, "end_layer_norm")
        self.dropout = Dropout(dropout, name="dropout", dtype=dtype_policy.variable_dtype)

    def build(self, input_shape: Any = None) -> None:
        size = self.config.hidden_size

        def add(name, *shape):
            # autocast=False keeps the weights' precision in a model that computes in bfloat16.
            initial = "zeros" if len(shape) == 1 else initializer(self.config)
            return self.add_weight(name=name, shape=shape, initializer=initial, autocast=False)

        self.start_kernel, self.start_bias = add("start_kernel", size, 1), add("start_bias", 1)
        self.end_hidden_kernel = add("end_hidden_kernel", 2 * size, size)
        self.end_hidden_bias = add("end_hidden_bias", size)
        self.end_layer_norm.build((None, None, size))
        self.end_kernel, self.end_bias = add("end_kernel", size, 1), add("end_bias", 1)
        self.answerable_hidden_kernel = add("answerable_hidden_kernel", 2 * size, size)
        self.answerable_hidden_bias = add("answerable_hidden_bias", size)
        self.answerable_kernel = add("answerable_kernel", size, 1)

    def starts(self, x: Any, p_mask: Any) -> Any:
        """Returns masked start logits: [B, T, H] and [B, T] -> [B, T], in float32 or wider."""
        x = ops.cast(x, self.variable_dtype)
        logits = ops.matmul(x, self.start_kernel)[..., 0] + self.start_bias  # [B, T]
        return masked(logits, p_mask)

    def ends(self, x: Any, positions: Any, p_mask: Any) -> Any:
        """Returns masked end logits, [B, K, T] in float32 or wider, for the starts [B, K]."""
        size = self.config.hidden_size
        # The only large products of this head, computed in the model's precision.
        kernel = ops.cast(self.end_hidden_kernel, self.compute_dtype)  # [2H, H]
        x = ops.cast(x, self.compute_dtype)
        of_token = ops.matmul(x, kernel[:size])  # [B, T, H]
        of_start = ops.matmul(gather_positions(x, positions), kernel[size:])  # [B, K, H]
        hidden = of_token[:, None] + of_start[:, :, None]  # [B, K, T, H]
        hidden = ops.tanh(ops.cast(hidden, self.variable_dtype) + self.end_hidden_bias)
        hidden = self.end_layer_norm(hidden)
        logits = ops.matmul(hidden, self.end_kernel)[..., 0] + self.end_bias  # [B, K, T]
        return masked(logits, p_mask[:, None])

    def answerable(self, x: Any, start_logits: Any, training: bool | None = None) -> Any:
        """Returns the logit of "there is no answer": [B, T, H] and [B, T] -> [B]."""
        x = ops.cast(x, self.variable_dtype)
        weights = ops.softmax(start_logits, axis=-1)[:, None]  # [B, 1, T]
        start = ops.matmul(weights, x)[:, 0]  # [B, H]
        hidden = ops.concatenate([start, x[:, 0]], axis=-1)  # [B, 2H]
        hidden = ops.matmul(hidden, self.answerable_hidden_kernel) + self.answerable_hidden_bias
        hidden = self.dropout(ops.tanh(hidden), training=training)
        return ops.matmul(hidden, self.answerable_kernel)[:, 0]  # [B]


def masked(logits: Any, p_mask: Any) -> Any:
    """Returns the logits where p_mask is 0, and -1e30 where it is 1."""
    p_mask = ops.cast(p_mask, logits.dtype)
    return logits * (1.0 - p_mask) - MASKED_LOGIT * p_mask


@keras.saving.register_keras_serializable(package="finetuning")
class BeamSpanModel(HeadModel):
    """An encoder with ALBERT's head for SQuAD 2.0.

    Args:
        start_n_top: K.
        end_n_top: J.
        dropout: the dropout rate in the layers that predict answerability.

    Example:
        model = BeamSpanModel(AlbertModel(config))
        beams = model({"input_ids": ids, "segment_ids": types, "p_mask": p_mask})
    """

    google_names = BEAM_NAMES

    def __init__(
        self,
        encoder: keras.Model,
        start_n_top: int = START_N_TOP,
        end_n_top: int = END_N_TOP,
        dropout: float = DROPOUT,
        name: str = "beam_spans",
        **kwargs: Any,
    ) -> None:
        super().__init__(encoder, name, **kwargs)
        self.start_n_top, self.end_n_top = start_n_top, end_n_top
        self.head = BeamSpanHead(self.config, dropout, self.dtype_policy, name="head")
        self.build()

    @property
    def objective(self) -> Objective:
        """Half the sum of three cross entropies: of start, end and answerability."""
        return Objective(BEAM_LOSSES, beam_sums, soft=SoftLoss("span", _soft_beams))

    def call(
        self,
        inputs: Mapping[str, Any],
        training: bool | None = None,
        run_block: Callable[..., Any] = call_block,
    ) -> dict[str, Any]:
        """Runs the encoder with the head.

        Args:
            inputs: the encoder's inputs and p_mask, a dict of [B, T] integers; p_mask is 1 where
                no answer is allowed. With start_positions [B], ends are computed for these starts,
                otherwise for the best starts.

        Returns:
            A dict in float32 or wider: "cls_logits" [B]; the higher, the less likely an answer
            exists. With start_positions also "start_logits" and "end_logits" [B, T]; otherwise
            "start_top_log_probs" and "start_top_index" [B, K], "end_top_log_probs" and
            "end_top_index" [B, K * J], beginning with the ends of the first start.
        """
        x = self.encoder(inputs, training=training, run_block=run_block)["sequence_output"]
        p_mask = inputs["p_mask"]
        start_logits = self.head.starts(x, p_mask)
        outputs = {"cls_logits": self.head.answerable(x, start_logits, training=training)}
        if "start_positions" in inputs:
            positions = inputs["start_positions"][:, None]  # [B, 1]
            end_logits = self.head.ends(x, positions, p_mask)[:, 0]  # [B, T]
            return {**outputs, "start_logits": start_logits, "end_logits": end_logits}
        # A row may be shorter than the beam width. In a served graph the length is unknown, and
        # the caller pads the rows to the beam width.
        length = x.shape[1] or max(self.start_n_top, self.end_n_top)
        starts, ends = (min(n, length) for n in (self.start_n_top, self.end_n_top))
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

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "start_n_top": self.start_n_top,
            "end_n_top": self.end_n_top,
            "dropout": self.head.dropout.rate,
        }


def _soft_beams(outputs, targets, temperature):
    """Adds half the divergence of answerability to `soft_spans` given the true starts: [B]."""
    own, theirs = outputs["cls_logits"], targets["cls_logits"]
    spans = soft_spans(outputs, targets, temperature)
    return spans + soft_binary_divergence(own, theirs, temperature) * 0.5


def answerable_losses(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> Any:
    """Returns half the cross entropy of is_impossible ("there is no answer"), [B]."""
    logits = outputs["cls_logits"]
    labels = ops.cast(batch["is_impossible"], logits.dtype)
    return ops.binary_crossentropy(labels, logits, from_logits=True) * 0.5


def beam_sums(outputs: Mapping[str, Any], batch: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `span_sums` and the `weighted_sums` "answerable_..." of `answerable_losses`."""
    correct = ops.equal(outputs["cls_logits"] > 0, ops.cast(batch["is_impossible"], "bool"))
    losses = answerable_losses(outputs, batch)
    answerable = weighted_sums("answerable", losses, batch["span_weights"], correct)
    return {**span_sums(outputs, batch), **answerable}
