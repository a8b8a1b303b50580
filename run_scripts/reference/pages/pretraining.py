"""Describes pre-training: what each phase took, its curves, held-out text, sentence order."""

import re
from typing import NamedTuple

from run_scripts.reference.ledger import Run
from run_scripts.reference.pages.tables import (
    cpu_time,
    duration,
    label,
    machine_letters,
    markdown_table,
    number,
    peak_memory,
    score_text,
    shown_sample,
)

PHASE_NAME = re.compile(r"([^/]+)/pretraining/(\d+)")
HELD_OUT_NAME = re.compile(r"([^/]+)/heldout/(\d+)")
ORDER_NAME = re.compile(r"([^/]+)/order/(\d+)")

HELD_OUT_SCORES = (
    "masked_lm_loss", "masked_lm_accuracy", "bits_per_character", "sentence_order_accuracy",
    "next_sentence_accuracy",
)  # fmt: skip

# Of benchmarks/quality/order.py.
ORDER_SCORES = (
    "examples", "beginning_share",
    "model_accuracy_all", "model_accuracy_beginning", "model_accuracy_others",
    "rule_accuracy_all", "rule_accuracy_beginning", "rule_accuracy_others",
)  # fmt: skip


class Picture(NamedTuple):
    """The curves of some phases."""

    file: str  # as the pages name it
    on_gpu: bool  # whether it shows the phases on GPUs, or the others: their times differ too much
    unit: str  # of the time
    seconds: float  # in that unit


PICTURES = (
    Picture("results/pretraining.png", False, "hours", 3600.0),
    Picture("results/pretraining_gpu.png", True, "minutes", 60.0),
)


class HeldOut(NamedTuple):
    """A measure on held-out text, in rows of one length."""

    reference: str  # the name of the reference run
    length: int  # of the rows, in pieces
    run: Run


class Phase(NamedTuple):
    """Pre-training on rows of one length."""

    reference: str  # the name of the reference run
    length: int  # of the rows, in pieces
    run: Run
    curves: dict  # tag -> `Curve`; empty where none were kept


def phases(results):
    """The `Phase`s of all reference runs in the ledger's order."""
    found = ((PHASE_NAME.fullmatch(name), name, run) for name, run in results.runs.items())
    return [
        Phase(match[1], int(match[2]), run, results.curves.get(name, {}))
        for match, name, run in found
        if match
    ]


def held_out_measures(results):
    """The `HeldOut`s of all reference runs in the ledger's order."""
    found = ((HELD_OUT_NAME.fullmatch(name), run) for name, run in results.runs.items())
    return [HeldOut(match[1], int(match[2]), run) for match, run in found if match]


def phase_lines(results, wording):
    """A table of the phases with their sum, and the picture of their curves."""
    measured = phases(results)
    if not measured:
        return []
    letters = machine_letters(results.runs)
    rows = [
        [
            phase.reference,
            phase.length,
            number(phase.run.scores["global_step"]),
            duration(phase.run.seconds, wording),
            cpu_time([phase.run], wording),
            peak_memory([phase.run], wording),
            letters[phase.run.machine],
            wording.none if phase.run.seed is None else phase.run.seed,
        ]
        for phase in measured
    ]
    total = wording.total.format(
        time=duration(sum(phase.run.seconds for phase in measured), wording),
        cpu=cpu_time([phase.run for phase in measured], wording),
    )
    table = markdown_table(wording.phases_header, rows)
    lines = [f"## {wording.phases_title}", "", wording.phases_note, "", *table, "", total, ""]
    shown = [picture for picture in PICTURES if shown_phases(measured, picture)]
    for picture in shown:
        alt = wording.curves_alt_gpu if picture.on_gpu else wording.curves_alt
        lines += [f"![{alt}]({picture.file})", ""]
    return [*lines, wording.curves_note, ""] if shown else lines


def shown_phases(phases, picture):
    """The `Phase`s of a `Picture`; none where none has curves."""
    found = [phase for phase in phases if bool(phase.run.machine.gpus) == picture.on_gpu]
    return found if any(phase.curves for phase in found) else []


def held_out_lines(results, wording):
    """A table of the measures on held-out text, a row for each run and length of rows."""
    measured = held_out_measures(results)
    if not measured:
        return []
    scores = [s for s in HELD_OUT_SCORES if any(s in run.scores for *_, run in measured)]
    rows = []
    for reference, length, run in measured:
        texts = [score_text(score, shown_sample(score, [run]), wording) for score in scores]
        rows.append([reference, length, *texts, number(run.scores["examples"])])
    header = [label(name, wording) for name in ("run", "row_length", *scores, "examples")]
    table = markdown_table(header, rows)
    return [f"## {wording.held_out_title}", "", *table, "", wording.held_out_note, ""]


def order_lines(results, wording):
    """A table of where models tell the order of two segments, a row for each."""
    found = ((ORDER_NAME.fullmatch(name), run) for name, run in results.runs.items())
    rows = [
        [match[1], match[2]]
        + [score_text(score, shown_sample(score, [run]), wording) for score in ORDER_SCORES]
        for match, run in found
        if match
    ]
    if not rows:
        return []
    table = markdown_table(wording.order_header, rows)
    return [f"## {wording.order_title}", "", *table, "", wording.order_note, ""]
