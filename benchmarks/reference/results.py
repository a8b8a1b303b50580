"""Prints the tables of the measured runs, from the ledger docs/results/runs.jsonl.

    python -m benchmarks.reference.results                          all tables, in Markdown
    python -m benchmarks.reference.results --runs=reference_model   of the runs named so
    python -m benchmarks.reference.results --commands --runs=choices/vocabulary

Scores of several seeds are shown as mean ± standard deviation. Shares are in percent.
questions.json next to the ledger lists the runs that answer a question; missing runs are omitted.
--commands prints the runs' commands instead, one per line and one for all seeds. These are the
runs that compared choices of pre-training, whose configurations are in choices_configs.json.
Programs that have moved have their present names, programs that no longer exist their old ones.
"""

import collections
import json
import re
import statistics
import string
from pathlib import Path

from benchmarks.common import flag, launch, print_table
from benchmarks.reference.ledger import LEDGER, read_runs
from benchmarks.reference.stages import BEGINNINGS
from bert_common.progress import format_duration

QUESTIONS_FILE = "questions.json"  # written when the choices were measured

# A score whose name has one of these parts is a share, shown in percent.
IN_PERCENT = (
    "accuracy", "f1", "exact", "rouge", "pearson", "spearman", "matthews", "precision", "recall",
    "share", "auprc", "auroc",
)  # fmt: skip

SEED = re.compile(r"/seed(\d+)$")
TASK = re.compile(rf"([^/]+)/({'|'.join(BEGINNINGS)})/([^/]+)")

# The second part of a run's name, for measurements of a pre-trained model -> the scores to show.
MEASURES = {
    "pretraining": ("global_step", "seconds_per_update"),
    "heldout": (
        "masked_lm_loss", "masked_lm_accuracy", "bits_per_character", "sentence_order_accuracy",
        "next_sentence_accuracy", "examples",
    ),
    "order": (
        "examples", "beginning_share", "model_accuracy_all", "model_accuracy_beginning",
        "model_accuracy_others", "rule_accuracy_all", "rule_accuracy_beginning",
        "rule_accuracy_others",
    ),
}  # fmt: skip

# The old command of a program -> its present command.
MOVED = {
    "python benchmarks/choices/order.py": "python -m benchmarks.quality.order",
    "python benchmarks/choices/bits.py": "python -m benchmarks.vocabularies.bits",
    "python -m run_scripts.reference": "python -m benchmarks.reference",
    "python benchmarks/gpu_step": "python -m benchmarks.gpu_step",
}


def main(arguments):
    """Prints the tables, or the commands."""
    runs = {n: r for n, r in read_runs(arguments.ledger).items() if n.startswith(arguments.runs)}
    if arguments.commands:
        print("\n".join(commands(runs)))
        return
    questions = Path(arguments.ledger).parent / QUESTIONS_FILE
    show_tables(
        runs, json.loads(questions.read_text(encoding="utf-8")) if questions.exists() else []
    )


def show_tables(runs, questions=()):
    """Prints all tables.

    Args:
        runs: name -> `Run`.
        questions: of questions.json.
    """
    letters = machine_letters(runs)
    print("Machines:\n")
    print("\n".join(f"- {letter}: {machine}" for machine, letter in letters.items()) + "\n")
    for kind, scores in MEASURES.items():
        show(f"## {kind}", *measure_table(runs, kind, scores, letters))
    for name in dict.fromkeys(match[1] for match in map(TASK.match, runs) if match):
        show(f"## {name}: tasks", *task_table(runs, name))
    for question in questions:
        show(f"## {question['title']}", *question_table(runs, question))
    show("## Costs", *cost_table(runs, letters))


def show(title, headings, rows):
    """Prints a title and a table; prints nothing if there are no rows."""
    if rows:
        print(f"{title}\n")
        print_table(headings, rows)


def measure_table(runs, kind, scores, letters):
    """Returns the headings and rows of a kind of measurement, one row per run and row length."""
    rows = []
    measured = {name: run for name, run in runs.items() if name.split("/")[1:2] == [kind]}
    shown = [score for score in scores if any(score in run.scores for run in measured.values())]
    for name, run in measured.items():
        texts = [score_text(score, [run]) for score in shown]
        rows.append([name.replace(f"/{kind}/", ", "), *texts, *cost_texts([run], letters)])
    return ["run, rows of", *shown, *COST_HEADINGS], rows


def task_table(runs, reference):
    """Returns the headings and rows for a reference run's tasks, each metric by starting point."""
    found = collections.defaultdict(dict)  # task -> starting point -> its runs
    for name, members in by_seed(runs).items():
        if (match := TASK.fullmatch(name)) and match[1] == reference:
            found[match[3]][match[2]] = [runs[member] for member in members]
    rows = []
    for task, beginnings in found.items():
        scores = dict.fromkeys(score for of in beginnings.values() for score in of[0].scores)
        for score in scores:
            if is_share(score):
                texts = [score_text(score, beginnings.get(name, ())) for name in BEGINNINGS]
                rows.append([task, score, *texts])
    return ["task", "score", *BEGINNINGS], rows


def question_table(runs, question):
    """Returns the headings and rows of a question, its variants by tasks."""
    cells = {(cell["variant"], cell["task"]): cell for cell in question["cells"]}
    tasks = list(dict.fromkeys(task for _, task in cells))
    rows = []
    for variant in dict.fromkeys(variant for variant, _ in cells):
        texts = []
        for task in tasks:
            cell = cells.get((variant, task), {"score": "", "runs": ()})
            made = [runs[name] for name in cell["runs"] if name in runs]
            texts.append(score_text(cell["score"], made))
        if any(text != "–" for text in texts):
            rows.append([variant, *texts])
    return ["variant", *tasks], rows


COST_HEADINGS = ["time", "CPU time", "memory", "machine"]


def cost_table(runs, letters):
    """Returns the headings and rows of the costs, one row for all seeds, with date and code."""
    rows = []
    for name, members in by_seed(runs).items():
        made = [runs[member] for member in members]
        seeds = ", ".join(str(run.seed) for run in made if run.seed is not None)
        code = ", ".join(dict.fromkeys(run.code or "–" for run in made))
        rows.append([name, *cost_texts(made, letters), seeds, made[-1].date, code])
    return ["run", *COST_HEADINGS, "seeds", "date", "code"], rows


def cost_texts(runs, letters):
    """Formats the total time and CPU time of runs, their peak memory, and their machines."""
    cpu = [run.cpu_seconds for run in runs if run.cpu_seconds is not None]
    memory = [run.memory_gib for run in runs if run.memory_gib is not None]
    return [
        format_duration(sum(run.seconds for run in runs)),
        format_duration(sum(cpu)) if cpu else "–",
        f"{max(memory):.2f} GiB" if memory else "–",
        "".join(dict.fromkeys(letters[run.machine] for run in runs)),
    ]


def commands(runs):
    """Yields the commands of runs below their names; one seed's command stands for all seeds."""
    for name, members in by_seed(runs).items():
        run = runs[members[0]]
        command = run.command
        for old, new in MOVED.items():
            command = command.replace(old, new)
        # All moved programs are modules now, so a program that is a file no longer exists.
        gone = f" (with the code of {run.code})" if "python benchmarks/" in command else ""
        seeds = f" (seeds {', '.join(SEED.search(m)[1] for m in members)})" if members[1:] else ""
        yield f"# {name}{seeds}{gone}\n{command}"


def by_seed(names):
    """Groups names that differ only in the seed, by the name without it."""
    groups = collections.defaultdict(list)
    for name in names:
        groups[SEED.sub("", name)].append(name)
    return groups


def machine_letters(runs):
    """Returns a letter for each `Machine` in the ledger's order; after Z come numbers."""
    machines = dict.fromkeys(run.machine for run in runs.values())
    names = [*string.ascii_uppercase, *map(str, range(len(machines)))]
    return dict(zip(machines, names, strict=False))


def is_share(score):
    """Returns True if a score of this name is shown in percent."""
    return any(part in score for part in IN_PERCENT)


def score_text(score, runs):
    """Formats the mean of a score over runs ± the standard deviation; a dash if it is missing."""
    # The results of run_squad are in percent, as in the original programs.
    values = [
        run.scores[score] * (100 if is_share(score) and "run_squad" not in run.command else 1)
        for run in runs
        if run.scores.get(score) is not None
    ]
    if not values:
        return "–"
    mean = statistics.fmean(values)
    if is_share(score):
        text, digits = f"{mean:.2f}", ".2f"
    else:
        text = f"{mean:,.0f}" if mean.is_integer() or abs(mean) >= 1000 else f"{mean:.4g}"
        digits = ".2g"
    return text if len(values) == 1 else f"{text} ± {statistics.stdev(values):{digits}}"


if __name__ == "__main__":
    flags = {
        "ledger": str(LEDGER),
        "runs": flag("", "the beginning of the runs' names"),
        "commands": flag(False, "print commands, no tables"),
    }
    launch(main, __doc__, flags)
