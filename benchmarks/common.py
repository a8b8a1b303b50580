"""Shared by the benchmarks: configurations, batches, contenders in processes, tables."""

import argparse
import dataclasses
import functools
import importlib.metadata
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

from albert_tf.config import AlbertConfig
from bert_common.atomic_write import atomic_write
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

    TensorFlow's extra "and-cuda" installs one release of them, PyPI's torch another;
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


def write_results(folder, results):
    """Writes a dict of numbers as eval_results.txt, and prints it."""
    os.makedirs(folder, exist_ok=True)
    text = "".join(f"{name} = {value}\n" for name, value in results.items())
    with atomic_write(os.path.join(folder, "eval_results.txt")) as file:
        file.write(text.encode())
    print(text, end="")


def child_environment():
    """For the processes of contenders that serve a model: quiet, and with this checkout."""
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": str(ROOT)}


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
