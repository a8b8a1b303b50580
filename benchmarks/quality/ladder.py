"""Measures the gains of single changes of pre-training at the same number of operations.

    python -m benchmarks.quality.ladder --text=text.txt --tokenizer_dir=vocab --tasks_dir=data
      --work_dir=work [--rungs=base,replaced_tokens] [--seeds=1,2,3] [--petaflops=100]

Every rung differs from the base in one thing, the last in two, whose gains may add up. The base
learns masked words without sentence pairs, with masks drawn during training, in rows of one
sequence, on an ELECTRA encoder of --layers x --hidden. A rung trains for as many updates as
--petaflops pay for, as counted by `bert_tf.costs.flops`, and is fine-tuned on the tasks. The
project's programs do all the work, so the same command resumes an interrupted ladder. Prints a
table of the means over the seeds, with standard deviations. Flags after `--` are passed to
fine-tuning.
"""

import dataclasses
import json
import os
import statistics
import sys
from pathlib import Path

from benchmarks.common import flag, launch, positive, print_table, results_of, run, some_of
from bert_common.errors import InputError
from bert_common.progress import with_progress
from bert_tf.checkpoint_files import latest_checkpoint, step_of
from bert_tf.costs.flops import training_flops
from bert_tf.memory_estimate import count_weights
from create_pretraining_data.records.metadata import read_sidecar
from electra_tf import costs as costs_of_both
from electra_tf.config import ElectraConfig
from run_scripts.flags.flag_files import SHIPPED
from run_scripts.tools.glue_plan import BENCHMARKS, find_flagfile, find_task, has_data
from tokenization import load_tokenizer

PETA = 1e15
LENGTH, PREDICTIONS = 128, 20
EMBEDDING, HEAD = 128, 64
TASKS = ["nsmc", "klue-ner", "korsts"]

# The number of checkpoints that a training writes.
CHECKPOINTS = 10


@dataclasses.dataclass(frozen=True)
class Rung:
    """A rung's differences from the base."""

    depth: float = 1.0  # times the base's layers
    width: float = 1.0  # times its hidden size
    generator: float = 0.25  # the width of the generator, as a fraction of the hidden size
    objective: str = "mlm"
    token_dropping: float = 0.0
    records: dict = dataclasses.field(default_factory=dict)  # flags of create_pretraining_data
    training: dict = dataclasses.field(default_factory=dict)  # flags of run_pretraining


RUNGS = {
    "base": Rung(),
    "replaced_tokens": Rung(objective="rtd"),
    "wide_generator": Rung(objective="rtd", generator=1.0),
    "shallow": Rung(depth=1 / 3),
    "wide": Rung(depth=1 / 2, width=1.5),  # about the same number of weights
    "sentence_order": Rung(records={"objective": "sop"}),
    "packed": Rung(records={"packing": True}),
    "static_masks": Rung(records={"masking": "static", "dupe_factor": 5}),
    "all_masks": Rung(records={"mask_replace_prob": 1, "random_replace_prob": 0}),
    "no_dropout": Rung(training={"encoder_dropout": 0}),
    "token_dropping": Rung(token_dropping=0.5),
    "bias_correction": Rung(training={"bias_correction": True}),
    "packed_no_dropout": Rung(records={"packing": True}, training={"encoder_dropout": 0}),
}
FLAGS = {
    "text": str,
    "tokenizer_dir": str,
    "tasks_dir": str,
    "work_dir": Path,
    "rungs": some_of(RUNGS, RUNGS),
    "tasks": some_of(TASKS, BENCHMARKS["korean"]),
    "seeds": [1, 2, 3],
    "petaflops": flag(100.0, type=positive(float)),
    "layers": 12,
    "hidden": 256,
    "batch": 128,
    "learning_rate": 5e-4,
    "optimizer": "adamw",
}


def config_of(arguments, rung, vocab_size):
    """Returns the rung's `ElectraConfig`."""
    hidden = round(arguments.hidden * rung.width / HEAD) * HEAD
    small = json.loads((SHIPPED / "electra_small.json").read_text(encoding="utf-8"))
    sizes = {
        "vocab_size": vocab_size,
        "embedding_size": EMBEDDING,
        "hidden_size": hidden,
        "num_hidden_layers": max(1, round(arguments.layers * rung.depth)),
        "num_attention_heads": hidden // HEAD,
        "intermediate_size": 4 * hidden,
        "generator_size": rung.generator,
    }
    return ElectraConfig(**{**small, **sizes})


def updates_of(arguments, rung, config):
    """Returns the number of updates that --petaflops pay for."""
    if rung.objective == "rtd":
        row = costs_of_both.training_flops(config, LENGTH, PREDICTIONS)
    else:
        row = training_flops(config, LENGTH, PREDICTIONS, 1, rung.token_dropping)
    return max(1, round(arguments.petaflops * PETA / (row * arguments.batch)))


def make_records(arguments, rung):
    """Makes the rung's records unless they exist; rungs without flags of their own share them."""
    name = "-".join(f"{name}_{value}" for name, value in rung.records.items()) or "records"
    records = arguments.work_dir / f"{name}.tfrecord"
    if read_sidecar(str(records)) is None:
        run("create_pretraining_data.py", **{
            "input_file": arguments.text, "output_file": records, "objective": "none",
            "tokenizer_dir": arguments.tokenizer_dir, "masking": "dynamic",
            "max_seq_length": LENGTH, "max_predictions_per_seq": PREDICTIONS, **rung.records,
        })  # fmt: skip
    return records


def pretrain(arguments, rung, config, output, seed):
    """Trains a rung; a finished training is left unchanged."""
    updates = updates_of(arguments, rung, config)
    file = arguments.work_dir / f"{output.name}_electra_config.json"
    file.write_text(json.dumps(dataclasses.asdict(config)), encoding="utf-8")
    run(
        "run_pretraining.py", config_file=file, objective=rung.objective, do_train=True,
        input_file=make_records(arguments, rung), output_dir=output, random_seed=seed,
        train_batch_size=arguments.batch, learning_rate=arguments.learning_rate,
        optimizer=arguments.optimizer,
        num_train_steps=updates, num_warmup_steps=updates // 10, keep_checkpoint_max=1,
        save_checkpoints_steps=max(1, updates // CHECKPOINTS),
        token_dropping=rung.token_dropping or None, **rung.training,
    )  # fmt: skip
    step = step_of(latest_checkpoint(output) or "")
    if step < updates:  # a signal stopped it, after which it saves and ends without an error
        sys.exit(f"error: stopped at update {step:,} of {updates:,}; the same command goes on")


def fine_tune(arguments, config, task, model, seed):
    """Fine-tunes on a task unless that is done; returns its first score, scaled as in tables."""
    known = find_task(task)
    results = results_of(
        f"{known.program}.py", model / task, *arguments.flags, task_name=task, model_dir=model,
        flagfile=find_flagfile("korean", "electra", config.hidden_size, task),
        data_dir=os.path.join(arguments.tasks_dir, known.folder), num_seeds=1, random_seed=seed,
    )  # fmt: skip
    return known.scale * results[f"eval_{known.metrics[0]}"]


def mean_and_deviation(values):
    """Returns for example "81.2 ± 0.4"; a single value has no deviation."""
    mean = f"{statistics.mean(values):.1f}"
    return f"{mean} ± {statistics.stdev(values):.1f}" if len(values) > 1 else mean


def climb(arguments, vocab_size):
    """Trains and measures what is missing; yields the rows of the table."""
    configs = {name: config_of(arguments, RUNGS[name], vocab_size) for name in arguments.rungs}
    scores = {(name, task): [] for name in arguments.rungs for task in arguments.tasks}
    jobs = [(seed, name) for seed in arguments.seeds for name in arguments.rungs]
    for seed, name in with_progress(jobs, "ladder", "trainings"):
        model, config = arguments.work_dir / f"{name}-{seed}", configs[name]
        if not all((model / task / "eval_results.txt").exists() for task in arguments.tasks):
            pretrain(arguments, RUNGS[name], config, model, seed)
        for task in arguments.tasks:
            scores[name, task].append(fine_tune(arguments, config, task, model, seed))
    for name, config in configs.items():
        yield [
            name, f"{config.num_hidden_layers} x {config.hidden_size}",
            f"{count_weights(config) / 1e6:.1f}",
            f"{updates_of(arguments, RUNGS[name], config):,}",
            *(mean_and_deviation(scores[name, task]) for task in arguments.tasks),
        ]  # fmt: skip


def main(arguments):
    """Trains what is missing, and prints the table."""
    for task in map(find_task, arguments.tasks):  # before the hours of training that come first
        if not has_data(arguments.tasks_dir, task):
            raise InputError(f"--tasks_dir must hold {task.folder}: {arguments.tasks_dir}")
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    rows = climb(arguments, load_tokenizer(arguments.tokenizer_dir).vocab_size)
    print_table(["rung", "size", "million weights", "updates", *arguments.tasks], rows)
    print(f"* {arguments.petaflops:g} petaflops each, {len(arguments.seeds)} seeds.")


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, passed_on=True)
