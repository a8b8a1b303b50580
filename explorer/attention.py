"""Shows attention by layer and head.

Shapes: L layers, N heads, T tokens of a text with [CLS] and [SEP], C cells of a small picture.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.errors import malformed

if TYPE_CHECKING:
    from explorer.answers import Explored
    from korean_bert.model import Model
    from korean_bert.results import Attention

# The maximum of C: the small pictures of all heads serve to find the one to look at.
CELLS = 16


class LastAttention:
    """Keeps the attention of the text that was requested last."""

    def __init__(self) -> None:
        self._key: tuple[str, str | None] | None = None
        self._found: Attention | None = None

    def of(self, model: "Model", text: str, second: str | None) -> "Attention":
        """Returns the `Attention` of a text or a pair, which is kept until a different request."""
        if self._found is None or self._key != (text, second):
            self._found = None  # not two in memory at a time
            self._found = model.attention(text, second)
            self._key = text, second
        return self._found


def show_attention(
    explored: "Explored", text: str, second: str | None, layer: int, head: int
) -> dict[str, Any]:
    """Shows what each token attends to in a layer and head, from 1; 0 is the average of all."""
    found = explored.last_attention.of(explored.model, text, second)
    chosen = found.probabilities  # [L, N, T, T]
    for name, value, axis in (("layer", layer, 0), ("head", head, 1)):
        if value > chosen.shape[axis]:
            raise malformed(
                f"{name} must be from 1 to {chosen.shape[axis]}, or 0 for the average. "
                f"Received: {value}"
            )
        index = slice(None) if value == 0 else slice(value - 1, value)
        chosen = chosen[(slice(None),) * axis + (index,)]
    weights = chosen.mean(axis=(0, 1), dtype=np.float64)  # [T, T]
    return {
        "pieces": list(found.pieces),
        "spans": found.spans,
        "layer": layer,
        "head": head,
        "weights": np.round(weights, 4).tolist(),
    }


def show_heads(explored: "Explored", text: str, second: str | None) -> dict[str, Any]:
    """Returns a small picture of every head: levels from 0 to 255, row by row."""
    found = explored.last_attention.of(explored.model, text, second)
    pictures = shrink(found.probabilities)  # [L, N, C, C]
    levels = np.round(pictures / pictures.max() * 255).astype(int)  # one scale for all
    return {
        "cells": levels.shape[-1],
        "heads": levels.reshape(*levels.shape[:2], -1).tolist(),
    }


def shrink(probabilities: np.ndarray) -> np.ndarray:
    """Shrinks probabilities [L, N, T, T] to pictures [L, N, C, C] of each cell's maximum."""
    length = probabilities.shape[-1]
    starts = np.unique(np.linspace(0, length, CELLS, endpoint=False).astype(int))
    rows = np.maximum.reduceat(probabilities, starts, axis=2)  # [L, N, C, T]
    return np.maximum.reduceat(rows, starts, axis=3)  # [L, N, C, C]
