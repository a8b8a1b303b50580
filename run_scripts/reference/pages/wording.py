"""Which sentences a page of results has; english.py and korean.py have them."""

from typing import NamedTuple


class Wording(NamedTuple):
    """The texts of one language; braces are filled in by the page."""

    title: str
    navigation: str  # links to the page in the other language and to the README
    notes_file: str  # beside the ledger, if there is one: what else its numbers need
    notes_title: str
    introduction: str
    empty: str
    machines: str
    reading: str
    phases_title: str
    phases_note: str
    phases_header: tuple  # run, rows, updates, time, time of the processor, memory, machine, seed
    stages_title: str
    cost_header: tuple  # stage, result, time, time of the processor, memory, machine, seed, code
    total: str
    held_out_title: str
    held_out_note: str
    order_title: str
    order_header: tuple  # run, row length, examples, beginnings, the model's scores, the rule's
    order_note: str
    curves_alt: str  # what the picture shows, for those who cannot see it
    curves_alt_gpu: str  # the same of the phases on GPUs
    curves_note: str
    tasks_title: str
    tasks_header: tuple  # task, score, the model, random weights
    tasks_note: str
    linear: str  # the heading of a column with linear models
    questions_title: str
    variant: str  # the heading of a question's first column
    trivial: str  # the heading of a row: an answer that needs no model
    nothing_learned: str
    best: str
    best_alone: str
    best_of_all: str
    one_seed: str  # no order of these tasks
    single_runs: str  # variants that the order leaves out
    spread: str  # how much the seed of pre-training changes
    difference: str  # the heading of the first column of differences
    paired: str  # what the table of differences shows
    runs_title: str
    runs_note: str
    cost: str  # time and CPU time
    commands_title: str
    commands_note: str
    seeds: str
    none: str  # in the place of a number that there is not
    list_comma: str
    units: tuple  # of seconds, minutes, hours
    stages: dict  # the first part of a stage's name -> how the page says it
    labels: dict  # another name in the ledger -> how the page says it; others stay as they are


def vocabularies(**forms):
    """A dict: the name of a vocabulary of benchmarks/choices -> how the pages say it.

    Args:
        forms: the name of the learner -> the text, `{:,}` for the number of pieces.
    """
    return {
        f"{learner}-{size}": form.format(size)
        for size in (8_000, 16_000, 32_000)
        for learner, form in forms.items()
    }
