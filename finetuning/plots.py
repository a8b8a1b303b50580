"""Draws what is easier seen than read.

Shapes: C classes.
"""

import importlib

import numpy as np

from bert_common.errors import InputError

# Labels that are written at the axes as they are; what is longer, or no font of matplotlib's own
# has letters for, is there by its number.
LONGEST_LABEL = 16


# Classes of which there is a picture; of more nobody could read it, and it takes long to draw.
MOST_DRAWN = 30


def draw_confusion(matrix, labels):
    """Which class is taken for which.

    Args:
        matrix: [C, C] integers: how many examples of a true class (row) were predicted to be of
            another (column).
        labels: the names of the classes.

    Returns:
        [height, width, 3] uint8: coloured by the share of the row, with the counts above 0.

    Raises:
        InputError: matplotlib is not installed.
    """
    try:
        agg = importlib.import_module("matplotlib.backends.backend_agg")
        figures = importlib.import_module("matplotlib.figure")
    except ImportError as error:
        raise InputError(
            "pictures need matplotlib: pip install -e '.[finetune]'. Received: " + str(error)
        ) from None
    count = len(labels)
    side = max(4.0, 1.5 + 0.6 * count)  # inches
    figure = figures.Figure(figsize=(side, side), dpi=80, layout="constrained")
    canvas = agg.FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [
        # Between two dollar signs matplotlib reads formulas.
        label.replace("$", r"\$") if label.isascii() and len(label) <= LONGEST_LABEL else str(i)
        for i, label in enumerate(labels)
    ]
    axes.set_xticks(range(count), names, rotation=45, ha="right")
    axes.set_yticks(range(count), names)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    for row, column in np.argwhere(matrix):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(matrix[row, column]), ha="center", va="center", color=colour)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
