"""Prints a plan as a table with a column for each size of the corpus."""

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bert_tf.config import EncoderConfig
from bert_tf.costs.cards import Card
from bert_tf.memory_estimate import GIB, count_weights
from model_formats.encoders import ENCODERS
from run_scripts.planning.corpus import HOUR, Layout, plan_records, plan_text
from run_scripts.planning.measured import KOREAN_WIKIPEDIA, TWO_CORES_FLOPS
from run_scripts.planning.training import (
    MEMORY_SHARE,
    Phase,
    checkpoint_bytes,
    passes_of,
    phase_flops,
    plan_devices,
    with_passes,
)

if TYPE_CHECKING:
    from run_scripts.plan import CorpusPlanFlags

GIGABYTE = 10**9

Rows = list[list[str]]  # of cells


def print_plan(
    flags: "CorpusPlanFlags",
    sizes: Sequence[float],
    config: EncoderConfig,
    phases: Sequence[Phase],
    cards: Sequence[Card],
) -> None:
    """Prints the plan of a shipped job for corpora of the given sizes in bytes."""
    packing = "packed" if flags.masking == "dynamic" else "single"
    objective = ENCODERS[flags.model.split("_")[0]].objective
    layouts = [KOREAN_WIKIPEDIA.layouts[objective, packing, phase.length] for phase in phases]
    rows = text_rows(sizes)
    for phase, layout in zip(phases, layouts, strict=True):
        rows += record_rows(flags, sizes, phase, layout)
    # For each size, the rows of each phase, and the phases scaled to --num_passes.
    rows_of_a_pass = [
        [plan_records(layout, size, 1, 1).rows for layout in layouts] for size in sizes
    ]
    needed = [with_passes(phases, of_a_pass, flags.num_passes) for of_a_pass in rows_of_a_pass]
    updates = " + ".join(f"{phase.updates:,}" for phase in phases)
    passes = [passes_of(phases, of_a_pass) for of_a_pass in rows_of_a_pass]
    rows.append([f"passes of the shipped {updates} updates", *map(number, passes)])
    for phase, *scaled in zip(phases, *needed, strict=True):
        label = f"updates of {flags.num_passes:g} passes, {phase.batch:,} x {phase.length}"
        rows.append([label, *(number(more.updates) for more in scaled)])
    rows += cpu_rows(flags, config, needed)
    rows += hour_rows(flags, config, phases, cards, needed)
    print_columns([["", *(f"{size / GIGABYTE:g} GB" for size in sizes)], *rows])
    print_model(flags, config, phases, cards)


def text_rows(sizes: Sequence[float]) -> Rows:
    """Returns the rows about the text and its vocabulary: a label and a string for each size."""
    plans = [plan_text(KOREAN_WIKIPEDIA, size) for size in sizes]
    return [
        ["sentences", *(number(plan.sentences) for plan in plans)],
        ["tokens", *(number(plan.pieces) for plan in plans)],
        ["learning the vocabulary, one core", *(hours(plan.vocabulary_hours) for plan in plans)],
    ]


def record_rows(
    flags: "CorpusPlanFlags", sizes: Sequence[float], phase: Phase, layout: Layout
) -> Rows:
    """Returns the rows about the records of a phase."""
    passes = flags.dupe_factor if flags.masking == "static" else 1
    compressed = flags.compression == "GZIP"
    plans = [plan_records(layout, size, passes, flags.cores, compressed) for size in sizes]
    stored = f", {passes} passes" if passes > 1 else ""
    return [
        [f"records of {phase.length}{stored}", *(number(plan.rows) for plan in plans)],
        ["  disk (twice that while they are made)", *(disk(plan.disk_bytes) for plan in plans)],
        [f"  making them, {flags.cores} cores", *(hours(plan.hours) for plan in plans)],
    ]


def hour_rows(
    flags: "CorpusPlanFlags",
    config: EncoderConfig,
    phases: Sequence[Phase],
    cards: Iterable[Card],
    needed: Sequence[Sequence[Phase]],
) -> Rows:
    """Returns the rows about the hours of training on each kind of card."""
    rows = []
    jobs = {
        f"{sum(phase.updates for phase in phases):,} updates": [phases] * len(needed),
        f"{flags.num_passes:g} passes": needed,
    }
    for card in cards:
        for name, columns in jobs.items():
            plans = [
                plan_devices(config, column, card, flags.gpus, flags.utilisation)
                for column in columns
            ]
            label = f"{flags.gpus} x {card.name}, {name}, assumed"
            rows.append([label, *(launch_bound(flags) or hours(plan.hours) for plan in plans)])
    return rows


def cpu_rows(
    flags: "CorpusPlanFlags", config: EncoderConfig, needed: Sequence[Sequence[Phase]]
) -> Rows:
    """Returns a row of hours of training on two cores, if the model was measured there."""
    if not (speed := TWO_CORES_FLOPS.get(flags.model)):
        return []
    operations = [sum(phase_flops(config, phase) for phase in column) for column in needed]
    return [
        [
            f"2 CPU cores with AMX, {flags.num_passes:g} passes, at a measured speed",
            *(hours(count / speed / HOUR) for count in operations),
        ]
    ]


def print_model(
    flags: "CorpusPlanFlags", config: EncoderConfig, phases: Sequence[Phase], cards: Iterable[Card]
) -> None:
    """Prints memory, accumulation, input and checkpoints, which do not depend on the text."""
    titles = [(f"rows of {phase.length} at once", "memory") for phase in phases]
    rows = [["", *itertools.chain.from_iterable(titles), "reads, rows/s"]]
    for card in cards:
        plan = plan_devices(config, phases, card, flags.gpus, flags.utilisation)
        if not plan.accumulation:
            rows.append([card.name, *(cell for _ in phases for cell in ("does not fit", "")), ""])
            continue
        cells = []
        for phase, count, memory in zip(phases, plan.accumulation, plan.memory_bytes, strict=True):
            cells.append(f"{phase.batch // flags.gpus // count} (accumulation {count})")
            cells.append(f"{memory / GIB:.0f} of {card.memory_gib} GiB")
        demand = " / ".join(f"{speed:,.0f}" for speed in plan.rows_per_second)
        rows.append([card.name, *cells, launch_bound(flags) or demand])
    print("\nMemory by estimate, --precision=bfloat16, without --recompute; what all cards read:\n")
    print_columns(rows)
    size = checkpoint_bytes(config)
    print(
        f"\n{count_weights(config):,} weights; a checkpoint takes {disk(size)}, the newest five "
        f"and the best weights {disk(5 * size + size / 3)}.\n"
        "Text, records and hours of CPUs: in proportion to what was measured on 24 MB of Korean\n"
        "Wikipedia.\n"
        f"Hours of GPUs: matrix products / (peak in bfloat16 x {flags.utilisation:g}); the "
        f"utilisation of {flags.utilisation:.0%} is an\nassumption, not a measurement. Memory is "
        f"planned to {MEMORY_SHARE:.0%} of a card's.\n"
        "A teacher of run_pretraining (--teacher_dir) is in none of these figures."
    )
    if flags.model in TWO_CORES_FLOPS:
        print(
            "A model this small does not keep a card busy: launching its many small operations\n"
            "takes the time, which was not measured. The hours of two CPU cores are from a\n"
            "training of this size on an Intel Xeon."
        )


def launch_bound(flags: "CorpusPlanFlags") -> str:
    """Returns the text shown if operations do not determine a card's speed, else ""."""
    return "launch-bound, unknown" if flags.model in TWO_CORES_FLOPS else ""


def print_columns(rows: Sequence[Sequence[str]]) -> None:
    """Prints rows of strings, the first column aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for label, *cells in rows:
        shown = [cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True)]
        print("  ".join([label.ljust(widths[0]), *shown]).rstrip())


def number(value: float) -> str:
    """Formats a number in words, such as "12.3 million"."""
    for limit, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= limit:
            return f"{figures(value / limit)} {name}"
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.2g}"


def disk(size: float) -> str:
    """Formats bytes in MB, GB or TB (10^6, 10^9 and 10^12)."""
    for limit, name in ((1e12, "TB"), (1e9, "GB")):
        if size >= limit:
            return f"{figures(size / limit)} {name}"
    return f"{figures(size / 1e6)} MB"


def hours(value: float) -> str:
    """Formats a number of hours in minutes, hours or days."""
    if value < 1:
        return f"{value * 60:.2g} min"
    return f"{value:.3g} h" if value < 72 else f"{figures(value / 24)} days"


def figures(value: float) -> str:
    """Formats three digits, or all before the point: "4,361", where .3g writes "4.36e+03"."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:.3g}"
