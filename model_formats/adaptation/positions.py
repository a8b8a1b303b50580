"""Makes the position embeddings of a longer model from a shorter model's trained ones.

Shapes: T trained positions, Q positions of the longer model, E embedding.
"""

import numpy as np


def repeat(trained: np.ndarray, positions: int) -> np.ndarray:
    """Repeats the trained rows [T, E] up to [Q, E]; the first T positions are unchanged.

    Local attention carries over unchanged, except where one copy ends and the next begins.
    Longformer is initialized this way (arXiv:2004.05150).
    """
    return trained[np.arange(positions) % len(trained)]


def interpolate(trained: np.ndarray, positions: int) -> np.ndarray:
    """Interpolates the trained rows [T, E] linearly to [Q, E]; only the two end rows stay."""
    places = np.linspace(0, len(trained) - 1, positions)  # [Q], in units of old positions
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, len(trained) - 1)
    share = (places - below)[:, None]  # [Q, 1]
    return ((1 - share) * trained[below] + share * trained[above]).astype(trained.dtype)


METHODS = {"repeat": repeat, "interpolate": interpolate}
