"""Lets the least important tokens skip the middle layers in training (arXiv:2203.13240).

A token's importance is a running average of the masked-LM loss of its id. The first layers compute
all tokens. The next layer computes only the important tokens, which still attend to all tokens. The
following layers see only the important tokens, and the last layer sees all tokens again. The
average and the choice of layers follow Google's Model Garden (official/projects/token_dropping).
The model has the same weights as in other trainings.

Shapes: B batch, T tokens, K kept tokens, H hidden, P predictions, V vocabulary.
"""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf
from keras import ops

from bert_tf.costs.dropped_tokens import first_short_call, kept_tokens
from bert_tf.layers import BlockInputs, gather_positions
from bert_tf.objective import WHOLE

# The average before the first loss of an id, and its decay: the newest loss counts 1 - BETA. Both
# are the Model Garden's. A new id is more important than an id that was seen.
INITIAL_LOSS, BETA = 10.0, 0.995

# The name of the average [V] among a batch's features, and the name of the sums that update it.
FEATURE, SUMS = f"{WHOLE}token_losses", "token_losses"

# Scores that replace the average of tokens which are always kept or dropped.
MASKED, SPECIAL, PADDING = 2e9, 1e9, -1e9


class TokenDropping:
    """The share of a row's tokens that is dropped, and the running average [V] that chooses them.

    Create it in the strategy's scope.
    """

    def __init__(self, share: float, vocab_size: int) -> None:
        self.share = share
        initial = tf.fill([vocab_size], INITIAL_LOSS)
        self.losses = tf.Variable(initial, trainable=False, name="token_losses")

    def run_block(
        self, run_block: Callable[..., Any], batch: Mapping[str, Any], calls: int
    ) -> Callable[..., Any]:
        """Returns the `run_block` for one forward pass of `calls` block calls over a batch.

        The batch holds the average as `FEATURE`. Blocks are called through the given `run_block`.
        """
        places = batch["masked_lm_positions"].shape[1]
        sequences = batch["sequence_starts"].shape[1] if "sequence_starts" in batch else 1
        count = kept_tokens(batch["input_ids"].shape[1], self.share, places, sequences)
        return _ShortRows(run_block, most_important(batch, count), calls)

    def loss_sums(self, ids: Any, losses: Any, weights: Any) -> Any:
        """Computes the sums for `updated`, which add up over the parts of a batch.

        The arguments are [B, P] each, for the masked tokens. Returns [2, V]: the sum of each id's
        losses, and their number.
        """
        weights = tf.reshape(tf.cast(weights, losses.dtype), [-1])
        losses, ids = tf.reshape(tf.stop_gradient(losses), [-1]), tf.reshape(ids, [-1])
        size = self.losses.shape[0]
        return tf.stack(
            [tf.math.unsorted_segment_sum(v, ids, size) for v in (losses * weights, weights)]
        )

    @staticmethod
    def updated(average: Any, sums: Any) -> Any:
        """Computes the average [V] after a step from its previous value and the sums [2, V]."""
        total, count = tf.unstack(tf.cast(sums, average.dtype))
        mean = total / tf.maximum(count, 1.0)
        return tf.where(count > 0, BETA * average + (1.0 - BETA) * mean, average)


def most_important(batch: Mapping[str, Any], count: int) -> Any:
    """Returns the positions [B, K] int32 of the K tokens to keep in each row, ascending.

    Masked positions have priority, then [CLS] and every [SEP], then the others by the average of
    their ids, and padding last. Earlier tokens win ties.
    """
    ids, mask = batch["input_ids"], ops.cast(batch["input_mask"], "bool")
    scores = ops.take(batch[FEATURE], ids, axis=0)  # [B, T]
    scores = ops.where(is_special(batch), SPECIAL, scores)
    scores = ops.where(is_masked(batch), MASKED, scores)
    scores = ops.where(mask, scores, PADDING)
    _, chosen = ops.top_k(scores, count)
    return ops.sort(ops.cast(chosen, "int32"), axis=1)


def is_masked(batch: Mapping[str, Any]) -> Any:
    """Computes [B, T] booleans, True at positions where a token is to be predicted."""
    positions = batch["masked_lm_positions"]
    is_used = ops.greater(batch["masked_lm_weights"], 0)  # [B, P]
    places = ops.arange(batch["input_ids"].shape[1], dtype=positions.dtype)  # [T]
    here = ops.equal(positions[..., None], places) & is_used[..., None]  # [B, P, T]
    return ops.any(here, axis=1)


def is_special(batch: Mapping[str, Any]) -> Any:
    """Computes [B, T] booleans, True at [CLS] (a sequence's start) and [SEP] (a segment's end).

    Does not use their ids, which only a tokenizer knows.
    """
    mask, segments = (ops.cast(batch[name], "int32") for name in ("input_mask", "segment_ids"))
    sequences = ops.cast(batch.get("segment_index", mask), "int32")
    # A different number for each segment of a row; 0 in padding.
    parts = mask * (2 * sequences + segments)  # [B, T]
    sequences = mask * sequences  # [B, T]
    outside = ops.zeros_like(parts[:, :1])
    ends = ops.not_equal(parts, ops.concatenate([parts[:, 1:], outside], axis=1))
    begins = ops.not_equal(sequences, ops.concatenate([outside, sequences[:, :-1]], axis=1))
    return (ends | begins) & ops.cast(mask, "bool")


class _ShortRows:
    """A `run_block` for one forward pass, whose middle calls compute only the kept tokens."""

    def __init__(self, run_block, kept, calls):
        self.run = run_block
        self.kept = kept  # [B, K]
        self.first, self.last = first_short_call(calls), calls - 1
        self.call = 0
        self.whole = None  # the input of the first short call, [B, T, H]
        self.inputs = None  # the `BlockInputs` of the kept tokens

    def __call__(
        self,
        block: keras.layers.Layer,
        x: Any,
        inputs: BlockInputs,
        training: bool | None = None,
    ) -> Any:
        """Runs a call like `call_block`; x is [B, T, H], after the first short call [B, K, H]."""
        number, self.call = self.call, self.call + 1
        if number == self.first:
            self.whole = x
            inputs = inputs._replace(positions=self.kept)
        elif self.first < number < self.last:
            self.inputs = self.inputs or _of_kept(inputs, self.kept)
            inputs = self.inputs
        elif number == self.last:
            x = _put_back(self.whole, x, self.kept)
        return self.run(block, x, inputs, training=training)


def _of_kept(inputs, kept):
    """Returns the `BlockInputs` of rows with only the kept tokens."""
    bias = inputs.bias[:, 0]  # [B, 1 or T, T]
    if bias.shape[1] != 1:
        bias = gather_positions(bias, kept)  # [B, K, T]
    bias = ops.transpose(gather_positions(ops.transpose(bias, (0, 2, 1)), kept), (0, 2, 1))
    position_ids = kept
    if inputs.position_ids is not None:
        position_ids = ops.take_along_axis(inputs.position_ids, kept, axis=1)
    return inputs._replace(bias=bias[:, None], position_ids=position_ids)


def _put_back(whole, x, kept):
    """Returns `whole` [B, T, H] with the rows of x [B, K, H] at the kept positions [B, K]."""
    places = ops.arange(whole.shape[1], dtype=kept.dtype)  # [T]
    is_kept = ops.any(ops.equal(kept[..., None], places), axis=1)  # [B, T]
    number = ops.cumsum(ops.cast(is_kept, kept.dtype), axis=1) - 1  # [B, T]
    found = gather_positions(x, ops.maximum(number, 0))  # [B, T, H]
    return ops.where(is_kept[..., None], found, whole)
