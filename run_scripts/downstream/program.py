"""Runs the program of a downstream task up to the import of TensorFlow."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_tf.training.cluster import shorten_lost_worker_errors
from bert_tf.training.interruptions.output_folder import training_folders
from run_scripts.downstream.job import make_job
from run_scripts.flags.devices import start_tensorflow
from run_scripts.flags.finetune import measured_splits, output_dirs, split_to_predict
from run_scripts.flags.training import compilation_cache

# The share of the training examples that is held out to choose the best checkpoint by, where a
# task has no dev split.
HELD_OUT_SHARE = 0.05


class Program(NamedTuple):
    """The parts of the program of one kind of task."""

    task_flags: tuple  # the flags that the model's folder records
    # (flags) -> a data set with `splits`, a dict split -> whether it has labels.
    read_data: Callable
    # (dataset, split, data_dir) -> a list of examples, and a dict of how many rows were changed or
    # dropped: for example "left out (short)" -> 3. Needs no TensorFlow.
    read_split: Callable
    make_task: Callable  # (flags, dataset, configuration, tokenizer) -> the `DownstreamTask`
    # The task flags that may differ from those that the model was trained with.
    changeable: tuple = ("max_seq_length",)
    uses_libraries: bool = True  # whether its metrics come from optional libraries


def finetune(given, program):
    """Runs a `Program` with `FinetuneFlags` as parsed: checks, trains, evaluates, predicts."""
    job = make_job(given, program)
    flags = job.flags
    make_writable(flags.output_dir, "--output_dir must be a directory that can be written")
    trained = output_dirs(flags) if flags.do_train else []
    with training_folders(trained, job.cluster) as (folders, refusal_reason):
        splits = read_splits(job, program.read_split)
        shorten_lost_worker_errors(job.cluster)
        start_tensorflow(flags, functools.partial(compilation_cache, flags))
        from run_scripts.downstream.training import run

        task = program.make_task(flags, job.dataset, job.config, job.tokenizer)
        run(job, task, splits, folders, refusal_reason)


def read_splits(job, read_split):
    """Reads every split that a `DownstreamJob` needs: a dict split -> a list of examples."""
    flags, dataset, splits = job.flags, job.dataset, job.dataset.splits
    measured = measured_splits(dataset)
    chief = job.cluster is None or job.cluster.is_chief
    needed = ["train"] if flags.do_train else []
    if flags.do_eval:
        if not measured:
            raise InputError("--do_eval needs a split with labels, dev or test. Received: none")
        needed += measured
    elif flags.do_train and flags.eval_every_steps:
        needed += [name for name in measured if name == "dev"]
    if flags.do_predict:
        needed.append(split_to_predict(flags, splits))
    examples = {}
    for split in dict.fromkeys(needed):
        if split not in splits:
            raise InputError(f"the task must have {split}. Received: {', '.join(splits)}")
        examples[split], left_out = read_split(dataset, split, flags.data_dir)
        shown = "".join(f", {count:,} {what}" for what, count in left_out.items())
        if chief:
            print(f"{split}: {len(examples[split]):,} examples{shown}")
    if flags.do_train and flags.eval_every_steps and "dev" not in splits:
        examples["train"], examples["held_out"] = hold_out(examples["train"])
        if chief:
            print(
                f"held_out: {len(examples['held_out']):,} of the training examples choose the best "
                "checkpoint"
            )
    return examples


def hold_out(examples):
    """Splits a list of examples into those to train on and `HELD_OUT_SHARE` of them."""
    if len(examples) < 2:
        raise InputError(
            "--eval_every_steps holds out training examples where a task has no dev split: "
            f"there must be two at least. Received: {len(examples)}"
        )
    order = np.random.default_rng(0).permutation(len(examples))
    count = max(1, int(HELD_OUT_SHARE * len(order)))
    return [[examples[i] for i in sorted(part)] for part in (order[count:], order[:count])]
