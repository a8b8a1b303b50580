"""Defines the losses of text vectors: cosines near scores, and partners above all other texts.

Shapes: B examples of a part of a batch, G examples of the global batch, S texts of an example,
H hidden, C candidates, (S - 1) * G.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from keras import ops

from bert_tf.objective import OWN_ROWS, WHOLE, Loss, Objective, weighted_sums

# The entries of a batch besides the encoder's inputs: scores from 0 to 1, the weight of each
# example, and the number of each text, [B, S], which equal texts share.
SCORES, WEIGHTS, TEXT_NUMBERS = "label_ids", "label_weights", "text_numbers"

# The weight of each example's score if `WEIGHTS` are the weights of ranking.
SCORE_WEIGHTS = "score_weights"

# The number of a text that is missing in an example with fewer texts than others.
NO_TEXT = -1

_COSINE_LOSSES = {"cosine": Loss((SCORES,), WEIGHTS, ("loss", "weight"))}
_RANKING_LOSSES = {
    "ranking": Loss(
        (TEXT_NUMBERS,),
        WEIGHTS,
        curves={"accuracy": "share of the texts whose partner is nearer than all others"},
    )
}

# Added to the sum of the weights of a loss if a batch may have no examples for it.
_EPSILON = 1e-6

# The smallest divisor, as the gradient of the length of a zero vector is undefined.
_SHORTEST = 1e-12


def make_objective(
    name: str, temperature: float, sizes: Sequence[int], normalize: bool
) -> Objective:
    """Returns the `Objective` of a name in `finetuning.similarity.data.OBJECTIVES`.

    Args:
        name: "simcse" is "ranking" of texts that are their own partners. "both" is "cosine" for
            examples with a score and "ranking" for others. Its cosine loss is multiplied by
            1 / temperature, by which ranking scales too, so that neither outweighs the other.
        temperature: the divisor of similarities in ranking.
        sizes: the numbers of leading dimensions that form vectors too, each with its own loss; the
            loss is their mean (arXiv:2205.13147, equation 1 with equal weights).
        normalize: whether ranking compares cosines; otherwise dot products.
    """
    if name == "cosine":
        return Objective(_COSINE_LOSSES, functools.partial(cosine_sums, sizes))
    sums = functools.partial(ranking_sums, sizes, temperature, normalize)
    if name == "both":
        cosine = Loss((SCORES,), SCORE_WEIGHTS, ("loss", "weight"), _EPSILON, 1 / temperature)
        ranking = dataclasses.replace(_RANKING_LOSSES["ranking"], epsilon=_EPSILON)
        return Objective(
            {"ranking": ranking, "cosine": cosine},
            lambda outputs, batch: {
                **sums(outputs, batch),
                **cosine_sums(sizes, outputs, {**batch, WEIGHTS: batch[SCORE_WEIGHTS]}),
            },
            shared=("vectors", TEXT_NUMBERS, WEIGHTS),
        )
    return Objective(_RANKING_LOSSES, sums, shared=("vectors", TEXT_NUMBERS, WEIGHTS))


def unit(vectors: Any) -> Any:
    """Scales vectors to length 1, [..., H] -> [..., H]; vectors of zeros are unchanged."""
    squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
    return vectors * ops.rsqrt(ops.maximum(squares, _SHORTEST**2))


def cosine_sums(
    sizes: Sequence[int], outputs: Mapping[str, Any], batch: Mapping[str, Any]
) -> dict[str, Any]:
    """Sums the squared differences of cosines and scores (arXiv:1908.10084, section 3).

    Args:
        sizes: as for `make_objective`.
        outputs: "vectors" [B, S, H]; the first two of each example are compared.
        batch: `SCORES` and `WEIGHTS`, [B].
    """
    vectors, losses = outputs["vectors"], []
    for size in sizes:
        pair = unit(vectors[..., :size])
        cosines = ops.sum(pair[:, 0] * pair[:, 1], axis=-1)  # [B]
        losses.append(ops.square(cosines - ops.cast(batch[SCORES], cosines.dtype)))
    return weighted_sums("cosine", ops.mean(ops.stack(losses), axis=0), batch[WEIGHTS])


def ranking_sums(
    sizes: Sequence[int],
    temperature: float,
    normalize: bool,
    outputs: Mapping[str, Any],
    batch: Mapping[str, Any],
) -> dict[str, Any]:
    """Sums `ranking_losses` over a part of a global batch, with candidates from the whole batch.

    The value is the sum over the part's own examples. Its gradient is the gradient of the whole
    batch's loss with respect to the part's own vectors, which are also candidates for the other
    examples, so the gradients of all parts add up to the gradient of one large batch.

    Args:
        sizes, temperature, normalize: as for `make_objective`.
        outputs: "vectors" [B, S, H].
        batch: `TEXT_NUMBERS` [B, S], `WEIGHTS` [B]; for a part, also what `Objective.shared` adds.
    """
    vectors, dtype = outputs["vectors"], outputs["vectors"].dtype
    every, numbers, weights = vectors, batch[TEXT_NUMBERS], ops.cast(batch[WEIGHTS], dtype)
    if OWN_ROWS in batch:
        rows = ops.expand_dims(batch[OWN_ROWS], -1)  # [B, 1]
        every = ops.scatter_update(batch[f"{WHOLE}vectors"], rows, vectors)  # [G, S, H]
        numbers = batch[f"{WHOLE}{TEXT_NUMBERS}"]  # [G, S]
        weights = ops.cast(batch[f"{WHOLE}{WEIGHTS}"], dtype)  # [G]
    losses, correct = ranking_losses(every, numbers, weights, sizes, temperature, normalize)
    total = ops.sum(losses * weights)
    if OWN_ROWS in batch:
        losses, correct, weights = (
            ops.take(values, batch[OWN_ROWS], axis=0) for values in (losses, correct, weights)
        )  # [B]
    sums = weighted_sums("ranking", losses, weights, correct)
    loss = sums["ranking_loss"]
    return {**sums, "ranking_loss": total + ops.stop_gradient(loss - total)}


def ranking_losses(
    vectors: Any,
    numbers: Any,
    weights: Any,
    sizes: Sequence[int],
    temperature: float,
    normalize: bool,
) -> tuple[Any, Any]:
    """Computes -log of the share of each first text's partner among all candidates.

    The loss is multiple negatives: the candidates are all second and all third texts of all
    examples (arXiv:1705.00652, section 4.4; with third texts arXiv:2104.08821, equation 5).
    Candidates equal to the first text or its partner are left out, except the partner itself.

    Args:
        vectors: [G, S, H], S at least 2.
        numbers: [G, S], the same for equal texts; `NO_TEXT` for a missing third text.
        weights: [G]; the texts of an example with weight 0 are not candidates.
        sizes, temperature, normalize: as for `make_objective`.

    Returns:
        The losses [G], and whether the partner is more similar than all other candidates at the
        first of the sizes, bool [G].
    """
    count = ops.shape(vectors)[0]
    candidates = _in_a_row(numbers[:, 1:])  # [C]
    own = numbers[:, :2, None]  # [G, 2, 1]
    left_out = ops.any(ops.equal(own, candidates[None, None]), axis=1)  # [G, C]
    left_out = ops.logical_or(left_out, ops.equal(candidates, NO_TEXT)[None])
    left_out = ops.logical_or(left_out, ops.equal(ops.tile(weights, numbers.shape[1] - 1), 0)[None])
    partner = ops.equal(ops.arange(count)[:, None], ops.arange(ops.shape(candidates)[0])[None])
    left_out = ops.logical_and(left_out, ops.logical_not(partner))  # [G, C]
    losses, correct = [], None
    for size in sizes:
        part = vectors[..., :size]
        part = unit(part) if normalize else part
        products = ops.matmul(part[:, 0], ops.transpose(_in_a_row(part[:, 1:])))  # [G, C]
        logits = ops.where(left_out, -1e30, products / temperature)
        of_partner = ops.sum(ops.where(partner, logits, 0.0), axis=1)  # [G]
        losses.append(ops.logsumexp(logits, axis=1) - of_partner)
        if correct is None:
            correct = of_partner > ops.max(ops.where(partner, -1e31, logits), axis=1)
    return ops.mean(ops.stack(losses), axis=0), correct


def _in_a_row(values: Any) -> Any:
    """Flattens [G, S, ...] -> [S * G, ...]: all second texts, then all third texts."""
    values = ops.swapaxes(values, 0, 1)
    return ops.reshape(values, (-1, *values.shape[2:]))
