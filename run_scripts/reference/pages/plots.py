"""Draws the curves of pre-training so that they can be read in print without colours.

The phases differ in their lines, not only in their grey. Labels are English on every page: the
fonts that come with matplotlib have no Hangul.
"""

import os
import secrets

from finetuning.metrics import imported

# Tag of an evaluation -> the label of its panel, and what its values are multiplied by.
PANELS = {
    "loss/masked_lm": ("masked-LM loss", 1),
    "accuracy/masked_lm": ("masked-LM accuracy, %", 100),
    "accuracy/sentence_order": ("sentence-order accuracy, %", 100),
    "accuracy/next_sentence": ("next-sentence accuracy, %", 100),
}

# Tag -> what guessing between two answers gets, as the panel shows it.
CHANCE = {"accuracy/sentence_order": 50, "accuracy/next_sentence": 50}

# A line for each phase, told apart without colour.
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D")

WIDTH, HEIGHT, DPI = 9.0, 3.0, 110  # inches, dots an inch: about 30 kB


def draw_curves(lengths, curves, path):
    """Writes a picture of the held-out curves of several phases, one after the other.

    Args:
        lengths: of the phases' rows.
        curves: for each phase a dict tag -> `Curve`.
        path: of a PNG file.

    Raises:
        InputError: matplotlib is not installed.
    """
    figure = imported("matplotlib.figure").Figure((WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    canvas = imported("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    shown = {tag: panel for tag, panel in PANELS.items() if any(tag in each for each in curves)}
    for i, (tag, (label, factor)) in enumerate(shown.items()):
        axes = figure.add_subplot(1, len(shown), i + 1)
        before = 0
        for number, (length, each) in enumerate(zip(lengths, curves, strict=True)):
            if tag not in each:
                continue
            axes.plot(
                [(before + step) / 1000 for step in each[tag].steps],
                [factor * value for value in each[tag].values],
                linestyle=LINES[number % len(LINES)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=3,
                color="black",
                linewidth=1.2,
                label=f"trained on rows of {length}",
            )
            before += each[tag].steps[-1]
        if tag in CHANCE:
            axes.axhline(CHANCE[tag], color="0.5", linewidth=0.8)
            across = axes.get_yaxis_transform()  # x: from 0 to 1 across the panel
            axes.text(
                0.98, CHANCE[tag], "chance", ha="right", va="bottom", fontsize=8, transform=across
            )
        axes.set_xlabel("updates, thousands")
        axes.set_title(label, fontsize=10)
        axes.grid(color="0.85", linewidth=0.5)
        if i == 0:
            axes.legend(fontsize=8, frameon=False)
    temporary = f"{path}.{secrets.token_hex(4)}.partial"
    canvas.print_png(temporary, metadata={"Software": None})  # the same bytes for the same curves
    os.replace(temporary, path)
