"""Defines the stages of the reference run as an ordered table of commands.

text -> vocabulary -> records -> phases of pre-training -> held-out text -> export -> tasks. A phase
with longer rows starts from the trained positions, repeated. Each stage is a command of one of the
project's programs, as a user would type it; its results are a line of the ledger. `program.py` runs
the stages.
"""

import functools
import os
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.common import typed
from benchmarks.reference import scores
from benchmarks.reference.measure import read_scores
from benchmarks.reference.sizes import FOLDER, SIZES, Size
from benchmarks.reference.tasks import find_tasks
from model_formats.model_folder import ModelFolder
from run_scripts.tools.glue_plan import find_flagfile

# The updates of the trial that measures the time of an update, and between points of its curve.
TRIAL_UPDATES, TRIAL_POINTS = 40, 10

# The minimum number of updates in a phase, however short its time.
FEWEST_UPDATES = 20

# The number of evaluations of a phase on held-out text, for the curves.
EVALUATIONS = 20

# The masked share of held-out rows, as of training rows: the default of --masked_lm_prob. The
# default maximum of 20 predictions would mask only a twentieth of 512 tokens, an easier task.
MASKED_SHARE = 0.15

# The batches of 64 in such an evaluation, as the whole text would take too long.
EVALUATION_BATCHES = 30

# The starting points of a task's model: name -> whether it is the reference model's weights.
BEGINNINGS = {"model": True, "random_weights": False}


class Work(NamedTuple):
    """The flags, model size and phases of a reference run, and the paths of its files."""

    flags: object  # `program.FLAGS`
    size: Size
    phases: tuple  # of `Phase`: the size's phases to run, with their shares of the hours

    def out(self, *names):
        """Returns a path in the folder of the run."""
        return os.path.join(self.flags.output_dir, *names)

    @property
    def tokenizer_dir(self):
        """The folder of the vocabulary, which is --begin_with or a new one."""
        return self.flags.begin_with or self.out("vocabulary")

    @property
    def model_dir(self):
        """The folder of the model to measure, which is the last phase's or --begin_with."""
        return self.weights_before(len(self.phases))

    def weights_before(self, number):
        """Returns the folder of the weights that exist before a phase, or None."""
        if number:
            return self.out("pretraining", str(self.phases[number - 1].length))
        return self.flags.begin_with

    def lacks_positions(self, number):
        """Returns True if a phase's rows are longer than all rows its weights were trained on."""
        trained = 0
        if self.flags.begin_with:
            trained = ModelFolder(self.flags.begin_with).trained_positions
        if number and trained is not None:  # None is unknown: assume that all are trained
            trained = max(trained, self.phases[number - 1].length)
        return bool(trained) and trained < self.phases[number].length

    def start_of(self, number):
        """Returns the folder of the weights that a phase starts from; None for random weights."""
        if self.lacks_positions(number):
            return self.out("positions", str(self.phases[number].length))
        return self.weights_before(number)


def make_work(flags):
    """Makes the `Work` of `program.FLAGS`, with all phases of the size or those in --lengths."""
    size = SIZES[flags.size]
    lengths = [p.length for p in size.phases]
    if flags.lengths:
        lengths = [int(length) for length in flags.lengths.split(",")]
    phases = [p for p in size.phases if flags.hours and p.length in lengths]
    whole = sum(phase.share for phase in phases)
    return Work(flags, size, tuple(p._replace(share=p.share / whole) for p in phases))


class Stage(NamedTuple):
    """A command of the reference run."""

    name: str  # its run's name in the ledger, after the reference run's name
    title: str  # the heading of its output
    # A list of arguments, or a function that returns it, given the scores of the earlier stages, a
    # dict name -> scores.
    command: list | Callable
    read: Callable  # () -> its scores, {} if it is not finished
    seed: int | None = None
    trained: str | None = None  # the folder whose curves are kept
    leaves: tuple = ()  # globs of files to remove after the stage

    def arguments(self, found):
        """Returns the command, given the scores of the earlier stages."""
        return self.command(found) if callable(self.command) else self.command


def make_stages(flags):
    """Returns the list of `Stage`s of a reference run, given the values of `program.FLAGS`."""
    work = make_work(flags)
    # A phase is measured on rows as long as its own. Longer rows, with untrained positions, would
    # select a different best checkpoint.
    held_out = sorted({phase.length for phase in work.size.phases})
    return [
        _text(work),
        *([] if flags.begin_with else [_vocabulary(work)]),
        *(_records(work, "train", phase.length, phase.predictions) for phase in work.phases),
        *(_records(work, "heldout", length, round(MASKED_SHARE * length)) for length in held_out),
        *(_trial(work, phase) for phase in work.phases),
        *_training(work),
        *(_held_out(work, length) for length in held_out),
        *([_export(work)] if work.phases else []),
        *_tasks(work),
    ]


def _program(name, **flags):
    """Returns the command of a program in the project's folder, a list."""
    return ["python", f"{name}.py", *typed(flags)]


def _module(name, **flags):
    """Returns the command of a program of this package, a list."""
    return ["python", "-m", f"benchmarks.reference.{name}", *typed(flags)]


def _text(work):
    names, folder = ("corpus", "held_out", "reviews", "tasks_dir"), work.out("text")
    given = {name: getattr(work.flags, name) or None for name in names}
    repeat = work.flags.repeat_reviews if work.flags.reviews else None
    return Stage(
        "text",
        "the text, divided into that to train on and that to measure on",
        _module("text", **given, repeat_reviews=repeat, output_dir=folder),
        functools.partial(scores.read_text, folder),
    )


def _vocabulary(work):
    pieces, folder = work.size.config["vocab_size"], work.tokenizer_dir
    text = work.out("text/train.txt")
    return Stage(
        "vocabulary",
        f"a vocabulary of at most {pieces:,} tokens",
        _program("build_vocab", input_file=text, vocab_size=pieces, output_dir=folder),
        functools.partial(scores.read_vocabulary, folder),
    )


def _record_file(work, kind, length):
    return work.out("records", f"{kind}_{length}.tfrecord")


def _records(work, kind, length, predictions):
    """Returns the stage that makes records of a text, "train" or "heldout"."""
    path, held_out = _record_file(work, kind, length), kind == "heldout"
    return Stage(
        f"records/{'heldout-' if held_out else ''}{length}",
        f"{'held-out ' if held_out else ''}text to records: rows of {length} tokens",
        _program(
            "create_pretraining_data",
            flagfile=f"{FOLDER}/reference_{'heldout' if held_out else 'data'}.flags",
            input_file=work.out("text", f"{kind}.txt"), tokenizer_dir=work.tokenizer_dir,
            max_seq_length=length, output_file=path, max_predictions_per_seq=predictions,
        ),
        functools.partial(scores.read_records, path),
    )  # fmt: skip


def _train(work, phase, **flags):
    """Returns the command of a training with a phase's rows."""
    return _program(
        "run_pretraining", flagfile=work.size.flagfile(phase),
        input_file=_record_file(work, "train", phase.length),
        eval_input_file=_record_file(work, "heldout", phase.length),
        do_train=True, do_eval=True, **_devices(work.flags), **flags,
    )  # fmt: skip


def _devices(flags):
    """Returns the values of `DeviceFlags`, which every program with a model has."""
    names = ("device", "ignore_compute_capability")
    return {name: getattr(flags, name) for name in names}


def _trial(work, phase):
    folder = work.out("trials", str(phase.length))
    return Stage(
        f"trial/{phase.length}",
        f"how long an update takes with rows of {phase.length} tokens",
        _train(
            work, phase, output_dir=folder, num_train_steps=TRIAL_UPDATES, num_warmup_steps=1,
            save_summary_steps=TRIAL_POINTS, max_eval_steps=1,
        ),
        functools.partial(scores.read_trial, folder),
        leaves=(os.path.join(folder, "model.ckpt-*"),),
    )  # fmt: skip


def _training(work):
    """Returns the stages of all phases, with a positions stage before a phase that needs it."""
    stages = []
    for number in range(len(work.phases)):
        if work.lacks_positions(number):
            stages.append(_positions(work, number))
        stages.append(_pretraining(work, number))
    return stages


def _positions(work, number):
    """Returns the stage that repeats the trained positions, instead of using random vectors.

    For mini with rows of 512 after rows of 128, the accuracy on masked tokens of held-out text was
    30.9 % after 200 updates with LAMB at 3e-3; from random positions 23.6 % after 2,655 at 1e-3.
    """
    phase, folder = work.phases[number], work.start_of(number)
    return Stage(
        f"positions/{phase.length}",
        f"positions for rows of {phase.length} tokens: those that are trained, repeated",
        _program(
            "adapt_checkpoint", model_dir=work.weights_before(number),
            max_position_embeddings=work.size.config["max_position_embeddings"],
            output_dir=folder,
        ),
        functools.partial(scores.read_positions, folder),
    )  # fmt: skip


def _pretraining(work, number):
    phase, seed = work.phases[number], work.flags.pretraining_seed
    folder = work.weights_before(number + 1)
    hours = work.flags.hours * phase.share

    def command(found):
        seconds = found[f"trial/{phase.length}"]["seconds_per_update"]
        updates = max(FEWEST_UPDATES, round(hours * 3600 / seconds))
        return _train(
            work, phase, output_dir=folder, num_train_steps=updates,
            num_warmup_steps=round(updates * phase.warmup),
            eval_every_steps=max(1, updates // EVALUATIONS), max_eval_steps=EVALUATION_BATCHES,
            random_seed=seed, init_checkpoint=work.start_of(number),
        )  # fmt: skip

    return Stage(
        f"pretraining/{phase.length}",
        f"pre-training with rows of {phase.length} tokens, {hours:.2g} hours",
        command,
        functools.partial(scores.read_pretraining, folder),
        seed=seed,
        trained=folder,
    )


def _held_out(work, length):
    folder, records = work.out("heldout", str(length)), _record_file(work, "heldout", length)
    return Stage(
        f"heldout/{length}",
        f"the model on all held-out text, rows of {length} tokens",
        _module(
            "held_out", model_dir=work.model_dir, input_file=records, output_dir=folder,
            **_devices(work.flags),
        ),
        functools.partial(read_scores, folder),
    )  # fmt: skip


def _export(work):
    folder = work.out("model")
    return Stage(
        "export",
        "the model as a folder for transformers",
        _program(
            "export_model", format="huggingface", precision="float16", model_dir=work.model_dir,
            output_dir=folder,
        ),
        functools.partial(scores.read_export, folder),
    )  # fmt: skip


def _tasks(work):
    """Returns one stage per seed, task with data and starting point.

    Seeds are the outer loop, so a run that stops early has results for every task.
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
    flagfile = find_flagfile("korean", "bert", size.config["hidden_size"], name).name
    if BEGINNINGS[beginning]:
        model = {"model_dir": work.model_dir}
    else:
        model = {"bert_config_file": size.config_file, "tokenizer_dir": work.tokenizer_dir}
    return Stage(
        f"{beginning}/{name}/seed{seed}",
        f"{name}, {beginning.replace('_', ' ')}, seed {seed} of {flags.seeds}",
        _program(
            task.program, flagfile=f"{FOLDER}/{flagfile}", task_name=name,
            data_dir=os.path.join(flags.tasks_dir, task.folder), output_dir=folder, **model,
            random_seed=seed, keep_checkpoint_max=1, **_devices(flags),
        ),
        functools.partial(read_scores, folder),
        seed=seed,
        leaves=(os.path.join(folder, "model.ckpt-*"),),
    )  # fmt: skip
