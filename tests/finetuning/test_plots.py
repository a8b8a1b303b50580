"""The plot of a confusion matrix."""

import numpy as np
import pytest

from finetuning.class_report import report_of_matrix
from finetuning.plots import MAX_DRAWN_CLASSES, draw_confusion_matrix


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "labels",
    (
        ("no", "yes"),
        ("IT과학", "경제", "생활문화"),  # no letters for them in matplotlib's own font
        ("$a_", "b$", "x" * 80),  # no formulas, nothing wider than the plot
        tuple(map(str, range(MAX_DRAWN_CLASSES))),
    ),
)
def test_a_plot_of_any_labels(labels):
    plot = draw_confusion_matrix(report_of_matrix(labels, 7 * np.eye(len(labels), dtype=int)))
    assert plot.dtype == np.uint8 and plot.ndim == 3 and plot.shape[2] == 3
    assert min(plot.shape[:2]) >= 300 and plot.min() < 50 < 200 < plot.max()


def test_colours_are_shares_of_the_row():
    """Nine of ten look alike, whatever the row holds; a class that nobody has is white."""
    one, other, diagonal = (
        draw_confusion_matrix(report_of_matrix(("a", "b"), np.array(matrix)))
        for matrix in ([[9, 1], [0, 0]], [[90, 10], [0, 0]], [[9, 0], [0, 1]])
    )
    assert not (one == other).all()  # the numbers
    dark = [(plot.astype(int).sum(axis=2) < 300).mean() for plot in (one, other)]
    assert dark[0] > 0.05 and dark[0] == pytest.approx(dark[1], rel=0.1)
    assert (diagonal.astype(int).sum(axis=2) < 300).mean() > 1.5 * dark[0]
