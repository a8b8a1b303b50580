"""Chooses the tags of a sentence together, so that no entity goes on that did not begin.

Shapes: P pieces, C classes.
"""

import numpy as np


def decode(scores, tags):
    """The valid sequence of tags whose scores have the largest sum (Viterbi).

    Args:
        scores: [P, C], logits or log probabilities: a number more for a whole row changes nothing.
        tags: the tags of the classes, "B-X", "I-X" or "O".

    Returns:
        [P] numbers of classes; I-X stands after B-X or I-X alone.
    """
    kinds = np.array([tag[1:] for tag in tags])
    inside = np.array([tag[0] == "I" for tag in tags])
    # To add to a step [from, to], and to the beginning [to].
    steps = np.where(inside & (kinds[:, None] != kinds), -np.inf, 0.0)  # [C, C]
    # The best sequence that ends in each tag [C], then for each step where it came from.
    best, came_from = np.where(inside, -np.inf, 0.0), []
    for place, row in enumerate(np.asarray(scores, np.float64)):
        if place:
            sums = best[:, None] + steps  # [C, C]
            best = sums.max(axis=0)
            came_from.append(sums.argmax(axis=0))
        best = best + row
    path = [best.argmax()]
    for choices in reversed(came_from):
        path.append(choices[path[-1]])
    return np.array(path[::-1], np.int32)[: len(scores)]  # of no piece nothing
