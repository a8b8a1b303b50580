"""Draws confusion matrices.

Shapes: C classes.
"""

import numpy as np

from finetuning.metrics import imported

# Longer labels, and labels with letters that matplotlib's own fonts lack, are drawn as the number
# of their class.
MAX_LABEL_LENGTH = 16

# A confusion matrix of more classes is unreadable, and drawing it is slow.
MAX_DRAWN_CLASSES = 30


def draw_confusion_matrix(matrix, labels):
    """Draws how often each true class was predicted as each class.

    Args:
        matrix: [C, C] integers: how many examples of a true class (row) were predicted as each
            class (column).
        labels: the names of the classes.

    Returns:
        [height, width, 3] uint8: each cell is coloured by its share of the row and shows its
        count, unless that is 0; under each true class stand its precision, recall and F1.

    Raises:
        InputError: matplotlib is not installed.
    """
    count = len(labels)
    side = max(4.0, 1.5 + 0.6 * count)  # inches
    figure = imported("matplotlib.figure").Figure((side, side), dpi=80, layout="constrained")
    canvas = imported("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)  # [C, C]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [
        # matplotlib parses text between two dollar signs as a formula.
        label.replace("$", r"\$") if label.isascii() and len(label) <= MAX_LABEL_LENGTH else str(i)
        for i, label in enumerate(labels)
    ]
    axes.set_xticks(range(count), names, rotation=45, ha="right")
    axes.set_yticks(
        range(count), [f"{name}\n{text}" for name, text in zip(names, figures(matrix), strict=True)]
    )
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    for row, column in np.argwhere(matrix):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(matrix[row, column]), ha="center", va="center", color=colour)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def figures(matrix):
    """Precision, recall and F1 of each class as text, in percent: "P 90 R 75 F1 82"."""
    right, true, predicted = matrix.diagonal(), matrix.sum(axis=1), matrix.sum(axis=0)  # [C]
    precision = 100 * right / np.maximum(predicted, 1)  # [C]
    recall = 100 * right / np.maximum(true, 1)  # [C]
    f1 = 200 * right / np.maximum(true + predicted, 1)  # [C]
    return [
        f"P {p:.0f} R {r:.0f} F1 {f:.0f}" for p, r, f in zip(precision, recall, f1, strict=True)
    ]
