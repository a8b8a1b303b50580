"""Makes the position embeddings of a longer model from the trained ones of a shorter one.

Shapes: P positions, T trained ones, Q positions of the longer model, E embedding.
"""

import numpy as np


def repeat(trained: np.ndarray, positions: int) -> np.ndarray:
    """Repeats the trained rows [T, E]; the first T positions stay as they are: [Q, E].

    Local attention carries over unchanged, except where one copy ends and the next begins; as
    Longformer starts, arXiv:2004.05150.
    """
    return trained[np.arange(positions) % len(trained)]


def interpolate(trained: np.ndarray, positions: int) -> np.ndarray:
    """Stretches the trained rows [T, E] linearly to [Q, E]: the first and the last alone stay."""
    places = np.linspace(0, len(trained) - 1, positions)  # [Q], in units of old positions
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, len(trained) - 1)
    share = (places - below)[:, None]  # [Q, 1]
    return ((1 - share) * trained[below] + share * trained[above]).astype(trained.dtype)


METHODS = {"repeat": repeat, "interpolate": interpolate}
