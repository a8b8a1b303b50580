"""Runs the unfinished stages of the reference run, then prints the tables of results.

    python -m benchmarks.reference --corpus='data/*.gz' --reviews=data/nsmc/ratings_train.txt \\
        --size=mini --hours=6 --tasks_dir=data --output_dir=output/reference

The stages lead from text to a model that is measured on Korean tasks: text, vocabulary, records,
phases of pre-training, held-out text, export, tasks. Each stage is a command of the project's
programs. If the run is stopped or killed, the same command resumes it.
"""

import glob
import os
import shutil

from benchmarks.common import flag, positive
from benchmarks.reference.ledger import read_runs
from benchmarks.reference.measure import measure
from benchmarks.reference.results import show_tables
from benchmarks.reference.scores import curves_path, held_out_curves, write_curves
from benchmarks.reference.sizes import SIZES
from benchmarks.reference.stages import make_stages
from benchmarks.reference.tasks import find_tasks
from bert_common.file_lock import locked
from bert_common.progress import format_duration
from run_scripts.tools.glue_plan import BENCHMARKS

# A corpus that every clone has, without any download.
SAMPLE_CORPUS, SAMPLE_HELD_OUT = "sample_corpus/train.txt", "sample_corpus/heldout.txt"

FLAGS = {
    "corpus": flag(
        SAMPLE_CORPUS,
        "text files, plain or gzip, one sentence a line, a blank line between documents: paths or "
        "globs, comma-separated",
    ),
    "held_out": flag(
        None,
        "likewise, text to measure on; without it one document in a hundred of the corpus, which "
        "is then not trained on",
    ),
    "reviews": flag(
        None, "more text to train on: a document a line, or NSMC's columns id, document, label"
    ),
    "repeat_reviews": flag(1, "how often the reviews are in the text", type=positive(int)),
    "size": flag(
        "mini",
        "the model, its vocabulary and its phases of pre-training, as in run_scripts/flagfiles/"
        "reference_SIZE*; tiny shows that the stages work",
        choices=tuple(SIZES),
    ),
    "begin_with": flag(
        None,
        "a folder with a model of --size, for example reference_model: pre-training goes on from "
        "its weights, with its vocabulary; without it both are made anew",
    ),
    "lengths": flag(
        None, "the phases to run, by the lengths of their rows, comma-separated; without it all"
    ),
    "hours": flag(
        0.25,
        "of pre-training, all phases together; a trial on this machine measures how many updates "
        "those are; 0: the model of --begin_with is measured as it is",
    ),
    "tasks_dir": flag(
        None,
        "the Korean tasks' folders as they are published (see run_korean.sh); without it, and "
        "where a task has none, there is no fine-tuning",
    ),
    "seeds": flag(3, "of fine-tuning: 1, 2, ... for each task", type=positive(int)),
    "pretraining_seed": 1,
    "output_dir": flag("output/reference", "where everything is written"),
    "docs_dir": flag(
        None,
        "the folder whose results/runs.jsonl keeps what was measured; without it docs in "
        "--output_dir",
    ),
    "name": flag(
        "reference",
        "the first part of the runs' names in the ledger; another one, with another --output_dir, "
        "for every other run of this program with the same --docs_dir",
    ),
    "device": flag("auto", choices=("auto", "cpu")),
    "ignore_compute_capability": False,
}


def main(flags):
    """Runs the unfinished stages and prints the tables."""
    if flags.corpus == SAMPLE_CORPUS and not flags.held_out:
        flags.held_out = SAMPLE_HELD_OUT
    docs_dir = flags.docs_dir or os.path.join(flags.output_dir, "docs")
    ledger = os.path.join(docs_dir, "results", "runs.jsonl")
    os.makedirs(flags.output_dir, exist_ok=True)
    with locked(os.path.join(flags.output_dir, "reference.lock")) as holder:
        assert not holder, f"{flags.output_dir} is in use by {holder}"
        note_tasks(flags)
        run_stages(make_stages(flags), flags, ledger)
    runs = read_runs(ledger)
    print()
    show_tables({name: run for name, run in runs.items() if name.split("/")[0] == flags.name})


def note_tasks(flags):
    """Prints the tasks that are omitted."""
    found = find_tasks(flags.tasks_dir) if flags.tasks_dir else {}
    missing = [name for name in BENCHMARKS["korean"] if name not in found]
    where = f"in {flags.tasks_dir}" if flags.tasks_dir else "(--tasks_dir names a folder)"
    if missing:
        print(f"tasks left out, no data {where}: {', '.join(missing)}")


def run_stages(stages, flags, ledger):
    """Runs the stages that are not in the ledger; the same command resumes a stopped run."""
    found = {}
    for number, stage in enumerate(stages, 1):
        name = f"{flags.name}/{stage.name}"
        print(f"\n== {number} of {len(stages)}: {stage.title}", flush=True)
        done = name in read_runs(ledger)
        run = measure(
            name,
            stage.arguments(found),
            stage.read,
            ledger=ledger,
            work_dir=os.path.join(flags.output_dir, "unfinished"),
            seed=stage.seed,
        )
        found[stage.name] = run.scores
        finish(stage, curves_path(ledger, name))
        when = f"done on {run.date}, " if done else ""
        memory = "" if run.memory_gib is None else f", {run.memory_gib:.2f} GiB"
        print(f"{when}{format_duration(run.seconds)}{memory}", flush=True)


def finish(stage, path):
    """Keeps the curves of a finished stage, and removes its files that are no longer needed."""
    if stage.trained and not os.path.exists(path):
        write_curves(path, held_out_curves(stage.trained))
    for pattern in stage.leaves:
        for left in glob.glob(pattern):
            shutil.rmtree(left) if os.path.isdir(left) else os.remove(left)
