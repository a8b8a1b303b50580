"""The stages of the reference run, in their order, as a table of commands.

text -> vocabulary -> records -> phases of pre-training -> held-out text -> export -> tasks. Each
stage is a command of the project's programs, as a user would type it; its results are a line of the
ledger. `program.py` runs them.
"""

import functools
import os
from collections.abc import Callable
from typing import NamedTuple

from run_scripts.reference import scores
from run_scripts.reference.measure import read_scores
from run_scripts.reference.sizes import FOLDER, SIZES
from run_scripts.reference.tasks import find_tasks
from run_scripts.tools.glue_plan import find_flagfile

# Updates of the trial that measures how long one takes, and between two points of its curve.
TRIAL_UPDATES, TRIAL_POINTS = 40, 10

# A phase has as many at least, however short its time.
FEWEST_UPDATES = 20

# Evaluations of a phase on held-out text, for the curves.
EVALUATIONS = 20

# Batches of 64 of such an evaluation: the whole text would take too long.
EVALUATION_BATCHES = 30

# How a task's model begins: name -> whether the weights are those of the reference model.
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
    size, out = SIZES[flags.size], functools.partial(os.path.join, flags.output_dir)
    return [
        _text(flags, out),
        _vocabulary(size, out),
        *(_records(size, phase.length, out) for phase in size.phases),
        *(_held_out_records(length, out) for length in held_out_lengths(size)),
        *(_trial(flags, size, phase, out) for phase in size.phases),
        *(_pretraining(flags, size, i, out) for i in range(len(size.phases))),
        *(_held_out(flags, size, length, out) for length in held_out_lengths(size)),
        _export(size, out),
        *_tasks(flags, size, out),
    ]


def held_out_lengths(size):
    """The lengths of held-out rows: that of the curves, and the longest, if it is another."""
    return tuple(dict.fromkeys((size.held_out_length, size.phases[-1].length)))


def _program(name, *arguments):
    """The command of a program in the project's folder, a list."""
    return ["python", f"{name}.py", *arguments]


def _module(name, *arguments):
    """The command of a program of this package, a list."""
    return ["python", "-m", f"run_scripts.reference.{name}", *arguments]


def _text(flags, out):
    names = ("corpus", "held_out", "reviews", "tasks_dir")
    given = {name: getattr(flags, name) for name in names}
    arguments = [f"--{name}={value}" for name, value in given.items() if value]
    if flags.reviews:
        arguments.append(f"--repeat_reviews={flags.repeat_reviews}")
    return Stage(
        "text",
        "the text, divided into that to train on and that to measure on",
        _module("text", *arguments, f"--output_dir={out('text')}"),
        functools.partial(scores.read_text, out("text")),
    )


def _vocabulary(size, out):
    return Stage(
        "vocabulary",
        f"a vocabulary of at most {size.vocabulary_size:,} pieces",
        _program(
            "build_vocab",
            f"--input_file={out('text', 'train.txt')}",
            f"--vocab_size={size.vocabulary_size}",
            f"--output_dir={out('vocabulary')}",
        ),
        functools.partial(scores.read_vocabulary, out("vocabulary")),
    )


def _record_file(kind, length, out):
    return out("records", f"{kind}_{length}.tfrecord")


def _record_command(kind, flagfile, length, out):
    return _program(
        "create_pretraining_data",
        f"--flagfile={FOLDER}/{flagfile}.flags",
        f"--input_file={out('text', f'{kind}.txt')}",
        f"--tokenizer_dir={out('vocabulary')}",
        f"--max_seq_length={length}",
        f"--output_file={_record_file(kind, length, out)}",
    )


def _records(size, length, out):
    return Stage(
        f"records/{length}",
        f"text to records: rows of {length} pieces",
        _record_command("train", "reference_data", length, out),
        functools.partial(scores.read_records, _record_file("train", length, out)),
    )


def _held_out_records(length, out):
    return Stage(
        f"records/heldout-{length}",
        f"held-out text to records: rows of {length} pieces",
        _record_command("heldout", "reference_heldout", length, out),
        functools.partial(scores.read_records, _record_file("heldout", length, out)),
    )


def _training_flags(flags, size, phase, out):
    """The flags that the trial of a phase and the phase itself share."""
    return [
        f"--flagfile={size.flagfile(phase)}",
        f"--input_file={_record_file('train', phase.length, out)}",
        f"--eval_input_file={_record_file('heldout', size.held_out_length, out)}",
        "--do_train",
        "--do_eval",
        *_devices(flags),
    ]


def _devices(flags):
    """The flags of `DeviceFlags`, as every program with a model has them."""
    ignored = ["--ignore_compute_capability"] if flags.ignore_compute_capability else []
    return [f"--device={flags.device}", *ignored]


def _trial(flags, size, phase, out):
    folder = out("trials", str(phase.length))
    return Stage(
        f"trial/{phase.length}",
        f"how long an update takes with rows of {phase.length} pieces",
        _program(
            "run_pretraining",
            *_training_flags(flags, size, phase, out),
            f"--output_dir={folder}",
            f"--num_train_steps={TRIAL_UPDATES}",
            "--num_warmup_steps=1",
            f"--save_summary_steps={TRIAL_POINTS}",
            "--max_eval_steps=1",
        ),
        functools.partial(scores.read_trial, folder),
        leaves=(os.path.join(folder, "model.ckpt-*"),),
    )


def phase_folder(phase, out):
    """The folder of the model that a phase trains."""
    return out("pretraining", str(phase.length))


def _pretraining(flags, size, number, out):
    phase = size.phases[number]
    folder = phase_folder(phase, out)

    def command(found):
        seconds = found[f"trial/{phase.length}"]["seconds_per_update"]
        updates = max(FEWEST_UPDATES, round(flags.hours * 3600 * phase.share / seconds))
        every = max(1, updates // EVALUATIONS)
        arguments = [
            *_training_flags(flags, size, phase, out),
            f"--output_dir={folder}",
            f"--num_train_steps={updates}",
            f"--num_warmup_steps={round(updates * phase.warmup)}",
            f"--eval_every_steps={every}",
            f"--max_eval_steps={EVALUATION_BATCHES}",
            f"--random_seed={flags.pretraining_seed}",
        ]
        if number:
            arguments.append(f"--init_checkpoint={phase_folder(size.phases[number - 1], out)}")
        return _program("run_pretraining", *arguments)

    return Stage(
        f"pretraining/{phase.length}",
        f"pre-training with rows of {phase.length} pieces, {flags.hours * phase.share:.2g} hours",
        command,
        functools.partial(scores.read_pretraining, folder),
        seed=flags.pretraining_seed,
        trained=folder,
    )


def _held_out(flags, size, length, out):
    folder = out("heldout", str(length))
    return Stage(
        f"heldout/{length}",
        f"the model on all held-out text, rows of {length} pieces",
        _module(
            "held_out",
            f"--model_dir={phase_folder(size.phases[-1], out)}",
            f"--input_file={_record_file('heldout', length, out)}",
            f"--output_dir={folder}",
            *_devices(flags),
        ),
        functools.partial(read_scores, folder),
    )


def _export(size, out):
    return Stage(
        "export",
        "the model as a folder for transformers",
        _program(
            "export_model",
            "--format=huggingface",
            "--precision=float16",
            f"--model_dir={phase_folder(size.phases[-1], out)}",
            f"--output_dir={out('model')}",
        ),
        functools.partial(scores.read_export, out("model")),
    )


def _tasks(flags, size, out):
    """A stage for each task with data, for each beginning, for each seed."""
    found = find_tasks(flags.tasks_dir) if flags.tasks_dir else {}
    return [
        _task(flags, size, (beginning, name, task, seed), out)
        for name, task in found.items()
        for beginning in BEGINNINGS
        for seed in range(1, flags.seeds + 1)
    ]


def _task(flags, size, which, out):
    beginning, name, task, seed = which
    folder = out("tasks", beginning, name, f"seed{seed}")
    flagfile = os.path.basename(find_flagfile("korean", size.model_type, name))
    if BEGINNINGS[beginning]:
        model = [f"--model_dir={phase_folder(size.phases[-1], out)}"]
    else:
        model = [
            f"--{size.model_type}_config_file={size.config_file}",
            f"--tokenizer_dir={out('vocabulary')}",
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
