"""Measures which choices of a pre-training pay, at equal passes over equal text.

    python benchmarks/choices --wiki=data/kowiki/kowiki_24MB.txt \\
        --held_out=data/kowiki/kowiki_2MB.txt --reviews=data/nsmc/ratings_train.txt --tasks_dir=data

This is how the project's own results, docs/results.md, were made, with
--ledger=docs/results/runs.jsonl; a ledger keeps to one text and one amount of work. The questions
and their variants are in questions.py, the tasks in tasks.py. Everything is run by the project's
programs, and each run is a line of --ledger; what several variants share is run once. Stopped or
killed, the same command continues. --plan prints what would be run, with hours; --report prints
the tables of what is measured and writes questions.json beside the ledger, as a run does. Run it in
the project's folder. Needs the extras bench, finetune and korean.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import argument_parser, positive, print_table, whole_numbers

from bert_common.errors import InputError
from choices.estimates import Estimates
from choices.plan import Inputs, Plan
from choices.questions import QUESTIONS
from choices.report import make_questions
from choices.run import run_pieces, select
from run_scripts.reference.ledger import read_runs
from run_scripts.reference.pages.english import ENGLISH
from run_scripts.reference.pages.questions import QUESTIONS_FILE, write_questions
from run_scripts.reference.pages.tables import (
    least_differences,
    question_sentences,
    question_table,
    without_seed,
)

INPUTS = ("wiki", "held_out", "reviews", "tasks_dir")


def names(text):
    """An argparse type: names separated by commas."""
    return text.split(",")


def parse(arguments=None):
    """The command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--wiki", help="text to learn from: paths or globs, plain or gzip")
    parser.add_argument("--held_out", help="text to measure on, likewise")
    parser.add_argument("--reviews", help="NSMC's ratings_train.txt: text to learn from, too")
    parser.add_argument("--tasks_dir", help="the tasks' folders, as they are published")
    parser.add_argument("--work_dir", default="output/choices")
    parser.add_argument("--ledger", help="the measured runs (default: runs.jsonl in --work_dir)")
    parser.add_argument("--questions", type=names, help="some of them; linear: linear models")
    parser.add_argument("--variants", type=names)
    parser.add_argument("--tasks", type=names, help="also pretraining, bits and others of --plan")
    parser.add_argument("--seeds", type=whole_numbers, default=[1, 2, 3], help="of fine-tuning")
    parser.add_argument("--passes", type=positive(float), default=2.0, help="over the text")
    parser.add_argument("--updates", type=positive(int), default=3_300, help="of pre-training")
    parser.add_argument(
        "--scale", type=positive(float), default=0.5, help="of the epochs of fine-tuning"
    )
    parser.add_argument(
        "--precision",
        choices=("bfloat16", "float32"),
        default="bfloat16",
        help="of the products of models that are trained from now on: what the ledger has stays",
    )
    parser.add_argument("--plan", action="store_true", help="print the pieces, run nothing")
    parser.add_argument("--report", action="store_true", help="write the tables' file, run nothing")
    found = parser.parse_args(arguments)
    found.ledger = found.ledger or str(Path(found.work_dir) / "runs.jsonl")
    return found


def make_plan(arguments):
    """The `Plan` of the command line."""
    missing = [name for name in INPUTS if not getattr(arguments, name)]
    if missing:
        raise InputError(f"--{missing[0]} must be given. Received: none")
    if not Path("run_pretraining.py").exists():
        raise InputError("the present folder must be the project's. Received: " + str(Path.cwd()))
    inputs = Inputs(**{name: getattr(arguments, name) for name in Inputs._fields})
    return Plan(QUESTIONS, inputs._replace(seeds=tuple(dict.fromkeys(inputs.seeds))))


def main(arguments=None):
    """The program; returns the exit status.

    Args:
        arguments: the command line, where it is not `sys.argv`.
    """
    arguments = parse(arguments)
    try:
        plan = make_plan(arguments)
        pieces = select(plan, arguments.questions, arguments.variants, arguments.tasks)
        if arguments.plan:
            show_plan(plan, pieces, read_runs(arguments.ledger))
            return 0
        if not arguments.report:
            failed = run_pieces(plan, pieces, arguments.ledger)
        runs = read_runs(arguments.ledger)
        tables = make_questions(with_seeds_of(runs, plan), QUESTIONS)
        write_questions(Path(arguments.ledger).parent / QUESTIONS_FILE, tables)
        show_tables(tables, runs)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print(str(stop) or "stopped: the same command goes on", file=sys.stderr)
        return 130
    if not arguments.report and failed:
        print(f"error: {len(failed)} pieces failed: {', '.join(failed)}", file=sys.stderr)
        return 1
    return 0


def with_seeds_of(runs, plan):
    """The plan with all seeds of fine-tuning that have been measured: tables show all of them."""
    measured = {int(seed) for _, seed in map(without_seed, runs) if seed}
    seeds = tuple(sorted({*plan.inputs.seeds, *measured}))
    return Plan(QUESTIONS, plan.inputs._replace(seeds=seeds))


def show_tables(tables, runs):
    """Prints what is measured of each question, as the pages of results do."""
    least = least_differences(tables, runs)
    for table in tables:
        lines = question_table(table, runs, ENGLISH)
        if lines:
            print("\n".join([f"## {table.title}", "", *lines, ""]))
            print("\n".join([*question_sentences(table, runs, ENGLISH, least), ""]))


def show_plan(plan, pieces, runs):
    """Prints every piece with its hours, and a table of their sums."""
    estimates = Estimates(plan.pieces.values(), runs)
    for piece in pieces:
        done = "measured" if piece.name in runs else "estimated"
        print(f"{estimates.seconds(piece) / 3600:7.3f} h {done:9} {piece.name}")
    print()
    headings = ["name", "pieces", "measured", "hours", "hours left"]
    print_table(headings, estimates.table(pieces))


if __name__ == "__main__":
    sys.exit(main())
