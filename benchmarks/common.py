"""Shared by the benchmarks: configurations, batches, contenders in processes, tables."""

import argparse
import contextlib
import dataclasses
import functools
import importlib.metadata
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from albert_tf.config import AlbertConfig
from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_tf.config import BertConfig

ROOT = Path(__file__).parents[1]
CONFIGS = {"bert": BertConfig, "albert": AlbertConfig}
VOCAB_SIZES = {"bert": 30522, "albert": 30000}  # of the published English models
DROPOUT = 0.1  # BERT's; ALBERT version 1's too

# Quiet and offline; several processes share a GPU, so none may reserve all of its memory.
ENVIRONMENT = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "KERAS_BACKEND": "tensorflow",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    "HF_HUB_OFFLINE": "1",
}


@functools.cache
def refuse_mixed_cuda(*folders):
    """Ends the program if CUDA libraries of two releases are installed into the same paths.

    TensorFlow's extra "and-cuda" installs those of one release, PyPI's torch those of another;
    both then load those that were installed last. Packages are looked for in `folders`, or in all
    of `sys.path`.
    """
    releases = {}
    for distribution in importlib.metadata.distributions(path=list(folders) or sys.path):
        name = distribution.metadata["Name"] or ""
        if match := re.fullmatch(r"(nvidia-.+)-cu\d+", name.lower()):
            releases.setdefault(match[1], set()).add(name)
    for names in releases.values():
        if len(names) > 1:
            sys.exit(
                "error: the extras bench and gpu must be installed into separate environments "
                "(or torch for CPUs with bench): their CUDA libraries replace each other. "
                f"Received: {' and '.join(sorted(names))}"
            )


def run(program, *flags):
    """Runs one of the project's programs, which must succeed."""
    refuse_mixed_cuda()
    command = [sys.executable, str(ROOT / program), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"error: {program} {' '.join(flags)}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}"
        )


def argument_parser(description):
    """A parser whose --help shows the description as it is written."""
    formatter = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=description, formatter_class=formatter)


def run_writer(parser, least, write):
    """Runs a program that writes --output_file; ends it with one line where an input is wrong.

    Args:
        parser: its `argparse.ArgumentParser`.
        least: the name of a flag -> its least value.
        write: what writes the file, a function of the parsed flags.
    """
    arguments = parser.parse_args()
    for name, value in least.items():
        if getattr(arguments, name) < value:
            parser.error(f"--{name} must be at least {value}")
    folder = os.path.dirname(os.path.abspath(arguments.output_file))
    try:
        make_writable(folder, "--output_file must be in a directory that can be written")
        write(arguments)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


def one_of(*choices):
    """An argparse type: some of `choices`, separated by commas."""

    def parse(text):
        values = text.split(",")
        if not set(values) <= set(choices):
            raise ValueError
        return values

    parse.__name__ = f"list of {', '.join(choices)}"  # the type's name in argparse's errors
    return parse


def positive(kind):
    """An argparse type: a number of this kind, int or float, above 0."""

    def parse(text):
        if not 0 < (number := kind(text)) < float("inf"):
            raise ValueError
        return number

    parse.__name__ = f"{kind.__name__} above 0"
    return parse


def whole_numbers(text):
    """An argparse type: integers separated by commas."""
    return [int(number) for number in text.split(",")]


def add_model_flags(parser):
    """Defines the flags for model and precision."""
    parser.add_argument("--model", choices=CONFIGS, default="bert")
    parser.add_argument("--config", help="its JSON file; without it the base size")
    parser.add_argument(
        "--precision", type=one_of("float32", "bfloat16"), default=["float32", "bfloat16"]
    )


def read_config(model, path=None):
    """A configuration of the file's sizes, or of the base size, with `DROPOUT`."""
    kind = CONFIGS[model]
    if path:
        config = kind.from_json_file(path)
    else:
        config = kind.from_preset("base", vocab_size=VOCAB_SIZES[model])
    return dataclasses.replace(
        config, hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=DROPOUT
    )


def random_batch(config, batch, length, predictions):
    """A batch of full rows of random ids; a row's masked positions are distinct and ascending."""
    rng = np.random.default_rng(0)
    positions = np.argsort(rng.random((batch, length)), axis=1)[:, :predictions]
    return {
        "input_ids": rng.integers(1, config.vocab_size, (batch, length), np.int32),
        "input_mask": np.ones((batch, length), np.int32),
        "segment_ids": rng.integers(0, 2, (batch, length), np.int32),
        "masked_lm_positions": np.sort(positions, axis=1).astype(np.int32),
        "masked_lm_ids": rng.integers(1, config.vocab_size, (batch, predictions), np.int32),
        "masked_lm_weights": np.ones((batch, predictions), np.float32),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1), np.int32),
        "next_sentence_weights": np.ones(batch, np.float32),
    }


class Contender:
    """A contender in a separate process, or in several that work together.

    The process builds, compiles and warms up, and then computes only when `run` is called, so that
    several contenders can be alive and take turns. It ends when its standard input is closed.

    Args:
        kind: a key of `contenders.KINDS`.
        tasks: the task, see `contenders`; or a list of tasks, one for each process.
        checkout: the folder of another checkout of this project, to measure its code.
    """

    def __init__(self, kind, tasks, checkout=None):
        refuse_mixed_cuda()
        self.tasks = tasks if isinstance(tasks, list) else [tasks]
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - until `close`
        folder = Path(checkout or Path(__file__).parents[1]).resolve()
        program = str(folder / "benchmarks" / "contenders.py")
        environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(folder)}
        self.processes = [
            subprocess.Popen(
                [sys.executable, program, kind, json.dumps(task)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                env={**environment, **task.get("environment", {})},
                text=True,
            )
            for task in self.tasks
        ]
        self.seconds = []  # per step, of every run
        self._answers()  # waits until the processes are warm

    def run(self, steps):
        """Computes `steps` steps; records the seconds per step, and the peak of memory so far."""
        for process in self.processes:
            with contextlib.suppress(BrokenPipeError):  # it has ended, so no answer will come
                print(steps, file=process.stdin, flush=True)
        answers = self._answers()
        self.seconds.append(max(answer["seconds"] for answer in answers))
        self.memory = sum(answer["memory"] for answer in answers)

    def _answers(self):
        lines = [process.stdout.readline() for process in self.processes]
        if not all(lines):
            self.log.seek(0)
            message = self.log.read()
            self.close()
            raise ContenderFailed(message, [process.returncode for process in self.processes])
        return [json.loads(line) for line in lines]

    def close(self):
        """Ends the processes, which frees their memory."""
        for process in self.processes:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
        for process in self.processes:
            process.wait()
        self.log.close()


class ContenderFailed(Exception):
    """A contender's process ended by itself.

    Args:
        message: what it printed, of which the end is shown.
        statuses: the exit status of each of its processes.
    """

    def __init__(self, message, statuses):
        super().__init__(message[-2000:])
        killed = min(statuses) < 0  # so it could not print a reason
        lines = [] if killed else message.strip().splitlines()
        self.last_line = lines[-1] if lines else f"exit status {statuses}"
        # TensorFlow's error, or Linux killed the process.
        self.out_of_memory = "RESOURCE_EXHAUSTED" in message or -signal.SIGKILL in statuses


def take_turns(contenders, rounds, steps):
    """Runs the contenders in turn, round after round: A B C A B C ...

    The speed of a shared machine drifts, so only times of the same round should be compared.

    Returns:
        For every contender the seconds per step in every round: a list of lists.
    """
    for _ in range(rounds):
        for contender in contenders:
            contender.run(steps)
    return [contender.seconds[-rounds:] for contender in contenders]


def median_and_spread(values):
    """The median of some values, and the interquartile range divided by it."""
    if len(values) == 1:
        return values[0], 0.0
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return median, (high - low) / median


def print_table(headings, rows):
    """Prints a Markdown table, each row as soon as `rows` yields it."""
    print(f"| {' | '.join(headings)} |\n|{'---|' * len(headings)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)
    print(flush=True)
