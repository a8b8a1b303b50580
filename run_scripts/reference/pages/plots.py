"""Draws the curves of pre-training so that they can be read in print without colours.

The phases differ in their lines, not only in their grey. Labels are English on every page: the
fonts that come with matplotlib have no Hangul.
"""

import collections
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

# Phases are told apart without colour; of different numbers, so that no pair of them comes twice.
LINES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v")

WIDTH, HEIGHT, DPI = 9.0, 3.4, 110  # inches, dots an inch: about 40 kB
LEGEND_COLUMNS = 3


def draw_curves(phases, path, picture):
    """Writes a picture of the held-out curves of several phases.

    On GPUs the phases of a run follow each other; on CPUs those of all runs do.

    Args:
        phases: `Phase`s; one without curves leaves its time free.
        path: of a PNG file.
        picture: the `Picture`.

    Raises:
        InputError: matplotlib is not installed.
    """
    figure = imported("matplotlib.figure").Figure((WIDTH, HEIGHT), dpi=DPI, layout="constrained")
    canvas = imported("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    shown = {tag: panel for tag, panel in PANELS.items() if any(tag in p.curves for p in phases)}
    for i, (tag, (label, factor)) in enumerate(shown.items()):
        axes = figure.add_subplot(1, len(shown), i + 1)
        elapsed = collections.defaultdict(float)  # seconds
        for number, phase in enumerate(phases):
            run = phase.reference if picture.on_gpu else None
            if tag in phase.curves:
                steps, values = phase.curves[tag]
                duration = phase.run.seconds / steps[-1]
                axes.plot(
                    [(elapsed[run] + duration * step) / picture.seconds for step in steps],
                    [factor * value for value in values],
                    linestyle=LINES[number % len(LINES)],
                    marker=MARKERS[number % len(MARKERS)],
                    markersize=3,
                    color="black",
                    linewidth=1.0,
                    label=f"{phase.reference}, rows of {phase.length}",
                )
            elapsed[run] += phase.run.seconds
        if tag in CHANCE:
            axes.axhline(CHANCE[tag], color="0.5", linewidth=0.8)
            across = axes.get_yaxis_transform()  # x: from 0 to 1 across the panel
            axes.text(
                0.98, CHANCE[tag], "chance", ha="right", va="bottom", fontsize=8, transform=across
            )
        axes.set_xlabel(f"{picture.unit} of training")
        axes.set_title(label, fontsize=10)
        axes.grid(color="0.85", linewidth=0.5)
        if i == 0:
            figure.legend(
                *axes.get_legend_handles_labels(),
                loc="outside lower center", ncols=LEGEND_COLUMNS, fontsize=8, frameon=False,
            )  # fmt: skip
    temporary = f"{path}.{secrets.token_hex(4)}.partial"
    canvas.print_png(temporary, metadata={"Software": None})  # the same bytes for the same curves
    os.replace(temporary, path)
