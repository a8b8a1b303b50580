"""Runs the stages of the reference run that are not done yet, then prints the tables of results."""

import dataclasses
import glob
import os
import re
import shutil
from pathlib import Path

from benchmarks.reference.curves import curves_path, held_out_curves, write_curves
from benchmarks.reference.ledger import keep_to_one_ledger, kept_line, read_runs
from benchmarks.reference.measure import measure
from benchmarks.reference.results import show_tables
from benchmarks.reference.sizes import SIZES
from benchmarks.reference.stages import make_stages
from benchmarks.reference.tasks import find_tasks
from bert_common.errors import InputError
from bert_common.file_lock import locked
from bert_common.folders import make_writable
from bert_common.progress import format_duration
from run_scripts.flags import groups
from run_scripts.flags.declaration import flag
from run_scripts.flags.devices import DeviceFlags
from run_scripts.flags.limits import MAX_SEED
from run_scripts.flags.parser import run_program
from run_scripts.flags.path_kinds import FILE, FOLDER, NOTHING
from run_scripts.flags.paths import expand_globs
from run_scripts.flags.training import ascending_numbers
from run_scripts.tools.glue_plan import BENCHMARKS

# What a clone has without any download.
SAMPLE_CORPUS, SAMPLE_HELD_OUT = "sample_corpus/train.txt", "sample_corpus/heldout.txt"


@dataclasses.dataclass(frozen=True)
class ReferenceFlags(DeviceFlags):
    """From text to a model that is measured on Korean tasks, and to the tables of its results.

    Text, vocabulary, records, phases of pre-training, held-out text, export, tasks: each stage is a
    command of the project's programs. Stopped or killed, the same command goes on.
    """

    EXAMPLE = (
        "--corpus='data/*.gz' --reviews=data/nsmc/ratings_train.txt --size=mini --hours=6 "
        "--tasks_dir=data --output_dir=output/reference"
    )

    corpus: str = groups.TASK.flag(
        SAMPLE_CORPUS,
        "Text files, plain or gzip, one sentence a line, a blank line between documents: paths or "
        "globs, comma-separated.",
        is_input=True,
        is_path=True,
    )
    held_out: str = groups.TASK.flag(
        None,
        "Likewise, text to measure on. Default: one document in a hundred of the corpus, which "
        "is then not trained on.",
        is_input=True,
        is_path=True,
    )
    reviews: str = groups.TASK.flag(
        None,
        "More text to train on: a document a line, or NSMC's columns id, document, label.",
        is_input=True,
        is_path=True,
    )
    repeat_reviews: int = groups.TASK.flag(
        1, "How often the reviews are in the text, for their weight.", least=1, most=1000
    )
    size: str = groups.UPDATES.flag(
        "mini",
        "The model, its vocabulary and its phases of pre-training, as in run_scripts/flagfiles/"
        "reference_SIZE*. tiny shows that the stages work.",
        choices=tuple(SIZES),
    )
    begin_with: str = groups.UPDATES.flag(
        None,
        "A folder with a model of --size, for example reference_model: pre-training goes on from "
        "its weights, with its vocabulary. Default: none; both are made anew.",
        is_input=True,
        takes=(FILE, FOLDER, NOTHING),
    )
    lengths: str = groups.UPDATES.flag(
        None,
        "The phases to run, by the lengths of their rows, comma-separated. Default: all of the "
        "size's.",
    )
    hours: float = groups.UPDATES.flag(
        0.25,
        "Hours of pre-training, all phases together; a trial on this machine measures how many "
        "updates those are. 0: the model of --begin_with is measured as it is.",
        least=0,
        most=100_000,
    )
    tasks_dir: str = groups.TASK.flag(
        None,
        "The folder with the Korean tasks' folders as they are published (see run_korean.sh); "
        "without one, and where a task has none, there is no fine-tuning.",
        is_input=True,
        takes=(FOLDER,),
    )
    seeds: int = groups.UPDATES.flag(
        3, "Seeds of fine-tuning: 1, 2, ... for each task.", least=1, most=1000
    )
    pretraining_seed: int = groups.UPDATES.flag(
        1, "The seed of pre-training.", least=0, most=MAX_SEED
    )
    output_dir: str = groups.OUTPUT.flag(
        "output/reference", "Where everything is written.", takes=(FOLDER, NOTHING)
    )
    docs_dir: str = groups.TASK.flag(
        None,
        "Where the folder results with the ledger and the curves is written; docs for the "
        "project's own. Default: docs in --output_dir.",
        takes=(FOLDER, NOTHING),
    )
    name: str = flag(
        "reference",
        "The first part of the runs' names in the ledger; another one, with another --output_dir, "
        "for every other run of this program with the same --docs_dir.",
    )


def main(argv=None):
    """The program; returns the exit status."""
    return run_program(run_reference, ReferenceFlags, argv)


def run_reference(given):
    """Checks everything that can be checked, then runs the stages that are left."""
    flags = resolve(given)
    make_writable(flags.output_dir, "--output_dir must be a folder that can be written to")
    make_writable(
        os.path.dirname(ledger_of(flags)), "--docs_dir must be a folder that can be written to"
    )
    with locked(os.path.join(flags.output_dir, "reference.lock")) as holder:
        if holder:
            raise InputError(f"--output_dir must be used by one run. Received: in use by {holder}")
        stages = make_stages(flags)
        keep_to_one_name(flags)
        keep_to_one_ledger(flags.output_dir, ledger_of(flags))
        note_tasks(flags)
        run_stages(stages, flags, ledger_of(flags))
    runs = read_runs(ledger_of(flags))
    print()
    show_tables({name: run for name, run in runs.items() if name.split("/")[0] == flags.name})


def resolve(flags):
    """Fills in the defaults that depend on other flags; refuses inputs that do not exist.

    Raises:
        InputError: a file is missing, a name cannot be used, or the present folder is not the
            project's.
    """
    if not re.fullmatch(r"[\w.-]+", flags.name):
        raise InputError(
            f"--name must be letters, digits, dots and hyphens. Received: {flags.name!r}"
        )
    if not os.path.exists(os.path.join("run_scripts", "flagfiles")):
        raise InputError(f"the present folder must be the project's. Received: {os.getcwd()}")
    if flags.corpus == SAMPLE_CORPUS and not flags.held_out:
        flags = dataclasses.replace(flags, held_out=SAMPLE_HELD_OUT)
    check_phases(flags)
    for name in ("corpus", "held_out", "reviews"):
        if getattr(flags, name):
            expand_globs(getattr(flags, name), name)
    docs_dir = flags.docs_dir or os.path.join(flags.output_dir, "docs")
    return dataclasses.replace(flags, docs_dir=docs_dir)


def check_phases(flags):
    """Refuses lengths that the size has no phase of, and a run without any model."""
    known = [phase.length for phase in SIZES[flags.size].phases]
    if flags.lengths and not set(ascending_numbers(flags.lengths) or [0]) <= set(known):
        raise InputError(
            f"--lengths must be among the lengths of --size={flags.size}, ascending: "
            f"{','.join(map(str, known))}. Received: {flags.lengths}"
        )
    if not flags.hours and not flags.begin_with:
        raise InputError("--hours=0 needs a model to measure, --begin_with. Received: none")


def keep_to_one_name(flags):
    """Refuses the folder of a run with another name: its weights would pass for this one's.

    Raises:
        InputError: the folder belongs to another run.
    """
    name = kept_line(Path(flags.output_dir) / "name.txt", flags.name)
    if name != flags.name:
        raise InputError(
            f"--output_dir must be a new folder for another --name. Received: {flags.output_dir}, "
            f"the folder of --name={name}, with --name={flags.name}"
        )


def note_tasks(flags):
    """Names the tasks that are left out."""
    found = find_tasks(flags.tasks_dir) if flags.tasks_dir else {}
    missing = [name for name in BENCHMARKS["korean"] if name not in found]
    where = f"in {flags.tasks_dir}" if flags.tasks_dir else "(--tasks_dir names a folder)"
    if missing:
        print(f"tasks left out, no data {where}: {', '.join(missing)}")


def ledger_of(flags):
    """The file of the measured runs."""
    return os.path.join(flags.docs_dir, "results", "runs.jsonl")


def run_stages(stages, flags, ledger):
    """Runs the stages that the ledger lacks.

    Args:
        stages: as `make_stages` returns them.
        flags: `ReferenceFlags`; of them output_dir and name.
        ledger: the file of runs.

    Raises:
        InputError: a stage failed.
        KeyboardInterrupt: stopped; the same command goes on.
    """
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
    """Keeps the curves of a stage that is done, and removes what nobody needs any more."""
    if stage.trained and not os.path.exists(path):
        write_curves(path, held_out_curves(stage.trained))
    for pattern in stage.leaves:
        for left in glob.glob(pattern):
            shutil.rmtree(left) if os.path.isdir(left) else os.remove(left)
