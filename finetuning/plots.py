"""Draws confusion matrices.

Shapes: C classes.
"""

import numpy as np

from finetuning.class_report import ClassReport
from finetuning.metrics import imported

# Longer labels, and labels with letters that matplotlib's own fonts lack, are drawn as the number
# of their class.
MAX_LABEL_LENGTH = 16

# A confusion matrix of more classes is unreadable, and drawing it is slow.
MAX_DRAWN_CLASSES = 30


def draw_confusion_matrix(report: ClassReport) -> np.ndarray:
    """Draws how often each true class was predicted as each class: [height, width, 3] uint8.

    Each cell is coloured by its share of the row and shows its count unless it is 0; the precision,
    recall and F1 of each true class are below its name.
    """
    matrix, labels = report.confusion, report.labels  # [C, C]
    assert matrix is not None  # an example has one class
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
    figures = 100 * np.stack([report.precision, report.recall, report.f1], axis=1)  # [C, 3]
    under = [
        f"{name}\nP {p:.0f} R {r:.0f} F1 {f:.0f}"
        for name, (p, r, f) in zip(names, figures, strict=True)
    ]
    axes.set_yticks(range(count), under)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    for row, column in np.argwhere(matrix):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(matrix[row, column]), ha="center", va="center", color=colour)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()
