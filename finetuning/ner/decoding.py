"""Chooses the tags of a sentence jointly, so that every I- follows a tag of its entity.

Shapes: P pieces, C classes.
"""

import numpy as np


def decode(scores, tags):
    """Finds the valid sequence of tags with the highest sum of scores (Viterbi's algorithm).

    Args:
        scores: [P, C], logits or log probabilities; the result is the same for both.
        tags: the tags of the classes, "B-X", "I-X" or "O".

    Returns:
        [P] indices of classes; I-X follows only B-X or I-X.
    """
    kinds = np.array([tag[1:] for tag in tags])
    inside = np.array([tag[0] == "I" for tag in tags])
    # The score of each transition [from, to].
    transitions = np.where(inside & (kinds[:, None] != kinds), -np.inf, 0.0)  # [C, C]
    # The score of the best sequence that ends in each tag [C], and the tag before it at each place.
    best, before = np.where(inside, -np.inf, 0.0), []
    for place, row in enumerate(np.asarray(scores, np.float64)):
        if place:
            sums = best[:, None] + transitions  # [C, C]
            best = sums.max(axis=0)
            before.append(sums.argmax(axis=0))
        best = best + row
    path = [best.argmax()]
    for choices in reversed(before):
        path.append(choices[path[-1]])
    return np.array(path[::-1], np.int32)[: len(scores)]  # empty without pieces
