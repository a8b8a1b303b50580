"""The stages of the reference run, in their order, as a table of commands.

text -> vocabulary -> records -> phases of pre-training -> held-out text -> export -> tasks. A phase
with longer rows starts from the trained positions, repeated. Each stage is a command of the
project's programs, as a user would type it; its results are a line of the ledger. `program.py` runs
them.
"""

import functools
import os
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.reference import scores
from benchmarks.reference.measure import read_scores
from benchmarks.reference.sizes import FOLDER
from benchmarks.reference.tasks import find_tasks
from benchmarks.reference.work import make_work
from run_scripts.tools.glue_plan import find_flagfile

# Updates of the trial that measures how long one takes, and between two points of its curve.
TRIAL_UPDATES, TRIAL_POINTS = 40, 10

# A phase has as many at least, however short its time.
FEWEST_UPDATES = 20

# Evaluations of a phase on held-out text, for the curves.
EVALUATIONS = 20

# Of the pieces of held-out rows, as of training rows: the default of --masked_lm_prob. The default
# of 20 at most would mask a twentieth of a row of 512, an easier task.
MASKED_SHARE = 0.15

# Batches of 64 of such an evaluation: the whole text would take too long.
EVALUATION_BATCHES = 30

# How a task's model begins: name -> whether with the weights of the reference model.
BEGINNINGS = {"model": True, "random_weights": False}


class Stage(NamedTuple):
    """A command of the reference run."""

    name: str  # of its run in the ledger, below the reference run's own name
    title: str  # what is printed above it
    # A list of arguments, or a function that returns one from the scores of the stages before, a
    # dict name -> scores.
    command: list | Callable
    read: Callable  # () -> its scores, {} if it has not come to its end
    seed: int | None = None
    trained: str | None = None  # the folder whose curves are kept
    leaves: tuple = ()  # globs: what is removed once it is done

    def arguments(self, found):
        """The command, by the scores of the stages before."""
        return self.command(found) if callable(self.command) else self.command


def make_stages(flags):
    """The stages of a reference run.

    Args:
        flags: `ReferenceFlags`.

    Returns:
        A list of `Stage`.
    """
    work = make_work(flags)
    held_out = held_out_lengths(work.size)
    return [
        _text(work),
        *([] if flags.begin_with else [_vocabulary(work)]),
        *(_records(work, phase) for phase in work.phases),
        *(_held_out_records(work, length) for length in held_out),
        *(_trial(work, phase) for phase in work.phases),
        *_training(work),
        *(_held_out(work, length) for length in held_out),
        *([_export(work)] if work.phases else []),
        *_tasks(work),
    ]


def held_out_lengths(size):
    """The lengths of held-out rows: a phase is measured on rows as long as its own.

    On longer rows, with positions not yet trained, another checkpoint would be its best one.
    """
    return sorted({phase.length for phase in size.phases})


def _program(name, *arguments):
    """The command of a program in the project's folder, a list."""
    return ["python", f"{name}.py", *arguments]


def _module(name, *arguments):
    """The command of a program of this package, a list."""
    return ["python", "-m", f"benchmarks.reference.{name}", *arguments]


def _text(work):
    flags = work.flags
    names = ("corpus", "held_out", "reviews", "tasks_dir")
    given = {name: getattr(flags, name) for name in names}
    arguments = [f"--{name}={value}" for name, value in given.items() if value]
    if flags.reviews:
        arguments.append(f"--repeat_reviews={flags.repeat_reviews}")
    return Stage(
        "text",
        "the text, divided into that to train on and that to measure on",
        _module("text", *arguments, f"--output_dir={work.out('text')}"),
        functools.partial(scores.read_text, work.out("text")),
    )


def _vocabulary(work):
    pieces = work.size.vocabulary_size
    return Stage(
        "vocabulary",
        f"a vocabulary of at most {pieces:,} pieces",
        _program(
            "build_vocab",
            f"--input_file={work.out('text', 'train.txt')}",
            f"--vocab_size={pieces}",
            f"--output_dir={work.tokenizer_dir}",
        ),
        functools.partial(scores.read_vocabulary, work.tokenizer_dir),
    )


def _record_file(work, kind, length):
    return work.out("records", f"{kind}_{length}.tfrecord")


def _record_command(work, kind, flagfile, length):
    return _program(
        "create_pretraining_data",
        f"--flagfile={FOLDER}/{flagfile}.flags",
        f"--input_file={work.out('text', f'{kind}.txt')}",
        f"--tokenizer_dir={work.tokenizer_dir}",
        f"--max_seq_length={length}",
        f"--output_file={_record_file(work, kind, length)}",
    )


def _records(work, phase):
    return Stage(
        f"records/{phase.length}",
        f"text to records: rows of {phase.length} pieces",
        [
            *_record_command(work, "train", "reference_data", phase.length),
            f"--max_predictions_per_seq={phase.predictions}",
        ],
        functools.partial(scores.read_records, _record_file(work, "train", phase.length)),
    )


def _held_out_records(work, length):
    return Stage(
        f"records/heldout-{length}",
        f"held-out text to records: rows of {length} pieces",
        [
            *_record_command(work, "heldout", "reference_heldout", length),
            f"--max_predictions_per_seq={round(MASKED_SHARE * length)}",
        ],
        functools.partial(scores.read_records, _record_file(work, "heldout", length)),
    )


def _training_flags(work, phase):
    """The flags that the trial of a phase and the phase itself share."""
    return [
        f"--flagfile={work.size.flagfile(phase)}",
        f"--input_file={_record_file(work, 'train', phase.length)}",
        f"--eval_input_file={_record_file(work, 'heldout', phase.length)}",
        "--do_train",
        "--do_eval",
        *_devices(work.flags),
    ]


def _devices(flags):
    """The flags of `DeviceFlags`, as every program with a model has them."""
    ignored = ["--ignore_compute_capability"] if flags.ignore_compute_capability else []
    return [f"--device={flags.device}", *ignored]


def _trial(work, phase):
    folder = work.out("trials", str(phase.length))
    return Stage(
        f"trial/{phase.length}",
        f"how long an update takes with rows of {phase.length} pieces",
        _program(
            "run_pretraining",
            *_training_flags(work, phase),
            f"--output_dir={folder}",
            f"--num_train_steps={TRIAL_UPDATES}",
            "--num_warmup_steps=1",
            f"--save_summary_steps={TRIAL_POINTS}",
            "--max_eval_steps=1",
        ),
        functools.partial(scores.read_trial, folder),
        leaves=(os.path.join(folder, "model.ckpt-*"),),
    )


def _training(work):
    """The phases, each after the positions that its weights lack."""
    stages = []
    for number in range(len(work.phases)):
        if work.lacks_positions(number):
            stages.append(_positions(work, number))
        stages.append(_pretraining(work, number))
    return stages


def _positions(work, number):
    """The trained positions over and over, in place of random vectors.

    Rows of 512 after rows of 128, the size mini: 30.9 % of the masked pieces of held-out text were
    right after 200 updates with LAMB at 3e-3; from random positions 23.6 % after 2,655 at 1e-3.
    """
    phase, folder = work.phases[number], work.start_of(number)
    return Stage(
        f"positions/{phase.length}",
        f"positions for rows of {phase.length} pieces: those that are trained, repeated",
        _program(
            "adapt_checkpoint",
            f"--model_dir={work.weights_before(number)}",
            f"--max_position_embeddings={work.size.positions}",
            f"--output_dir={folder}",
        ),
        functools.partial(scores.read_positions, folder),
    )


def _pretraining(work, number):
    phase, seed = work.phases[number], work.flags.pretraining_seed
    folder = work.weights_before(number + 1)
    hours = work.flags.hours * phase.share

    def command(found):
        seconds = found[f"trial/{phase.length}"]["seconds_per_update"]
        updates = max(FEWEST_UPDATES, round(hours * 3600 / seconds))
        every = max(1, updates // EVALUATIONS)
        arguments = [
            *_training_flags(work, phase),
            f"--output_dir={folder}",
            f"--num_train_steps={updates}",
            f"--num_warmup_steps={round(updates * phase.warmup)}",
            f"--eval_every_steps={every}",
            f"--max_eval_steps={EVALUATION_BATCHES}",
            f"--random_seed={seed}",
        ]
        if weights := work.start_of(number):
            arguments.append(f"--init_checkpoint={weights}")
        return _program("run_pretraining", *arguments)

    return Stage(
        f"pretraining/{phase.length}",
        f"pre-training with rows of {phase.length} pieces, {hours:.2g} hours",
        command,
        functools.partial(scores.read_pretraining, folder),
        seed=seed,
        trained=folder,
    )


def _held_out(work, length):
    folder = work.out("heldout", str(length))
    return Stage(
        f"heldout/{length}",
        f"the model on all held-out text, rows of {length} pieces",
        _module(
            "held_out",
            f"--model_dir={work.model_dir}",
            f"--input_file={_record_file(work, 'heldout', length)}",
            f"--output_dir={folder}",
            *_devices(work.flags),
        ),
        functools.partial(read_scores, folder),
    )


def _export(work):
    folder = work.out("model")
    return Stage(
        "export",
        "the model as a folder for transformers",
        _program(
            "export_model",
            "--format=huggingface",
            "--precision=float16",
            f"--model_dir={work.model_dir}",
            f"--output_dir={folder}",
        ),
        functools.partial(scores.read_export, folder),
    )


def _tasks(work):
    """A stage for each seed, for each task with data, for each beginning.

    The seeds come one after the other: whoever stops early has every task, with fewer of them.
    """
    flags = work.flags
    found = find_tasks(flags.tasks_dir) if flags.tasks_dir else {}
    return [
        _task(work, beginning, name, task, seed)
        for seed in range(1, flags.seeds + 1)
        for name, task in found.items()
        for beginning in BEGINNINGS
    ]


def _task(work, beginning, name, task, seed):
    flags, size = work.flags, work.size
    folder = work.out("tasks", beginning, name, f"seed{seed}")
    flagfile = find_flagfile("korean", size.model_type, size.hidden_size, name).name
    if BEGINNINGS[beginning]:
        model = [f"--model_dir={work.model_dir}"]
    else:
        model = [
            f"--{size.model_type}_config_file={size.config_file}",
            f"--tokenizer_dir={work.tokenizer_dir}",
        ]
    return Stage(
        f"{beginning}/{name}/seed{seed}",
        f"{name}, {beginning.replace('_', ' ')}, seed {seed} of {flags.seeds}",
        _program(
            task.program,
            f"--flagfile={FOLDER}/{flagfile}",
            f"--task_name={name}",
            f"--data_dir={os.path.join(flags.tasks_dir, task.folder)}",
            f"--output_dir={folder}",
            *model,
            f"--random_seed={seed}",
            "--keep_checkpoint_max=1",
            *_devices(flags),
        ),
        functools.partial(read_scores, folder),
        seed=seed,
        leaves=(os.path.join(folder, "model.ckpt-*"),),
    )
