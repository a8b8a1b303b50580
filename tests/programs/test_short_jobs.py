"""Fine-tuning compiles only as much as the number of steps pays for."""

import types
import warnings

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import BertConfig
from run_scripts.classifier import ClassifierFlags
from run_scripts.downstream.compilation import (
    choose_split_boundaries,
    compilation_cost,
    skip_costly_compilation,
)
from run_scripts.downstream.training import training_steps
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.finetune import unused_steps
from run_scripts.flags.parser import parse
from run_scripts.race import RaceFlags
from tests.support.refusals import refused

TASK = types.SimpleNamespace(rows=1)
CHOICES = types.SimpleNamespace(rows=4)


def job(hidden_size, *arguments):
    """What is read here of a `DownstreamJob`."""
    argv = ["run_classifier.py", "--task_name=nsmc", "--data_dir=d", "--output_dir=o", *arguments]
    flags = resolve_model_defaults(parse(ClassifierFlags, argv), "bert")
    config = BertConfig(vocab_size=60, hidden_size=hidden_size, num_attention_heads=2)
    return types.SimpleNamespace(flags=flags, config=config, evaluates=flags.do_eval)


TRAIN = ("--do_train", "--max_seq_length=128", "--train_batch_size=32")


@pytest.mark.parametrize(
    "hidden_size, arguments, expected",
    (
        (128, (*TRAIN, "--train_step=6"), "off"),
        (128, (*TRAIN, "--train_step=6", "--xla=on"), "on"),
        (128, (*TRAIN, "--train_step=6", "--xla=off"), "off"),
        (128, (*TRAIN, "--train_step=937"), "auto"),
        (768, (*TRAIN, "--num_train_epochs=3"), "auto"),
        (768, ("--do_predict", "--predict_batch_size=8"), "auto"),  # 50 batches
        (64, ("--do_predict", "--predict_batch_size=8"), "off"),
    ),
)
def test_xla_only_where_it_pays(hidden_size, arguments, expected, monkeypatch):
    given = []
    monkeypatch.setattr(tf.config.optimizer, "set_experimental_options", given.append)
    counts = {"train": 3668, "dev": 400}
    if "--do_train" not in arguments:
        del counts["train"]
    assert skip_costly_compilation(job(hidden_size, *arguments), TASK, counts) == expected
    # Without XLA here is a short job: no graph is optimized.
    assert given == ([{"disable_meta_optimizer": True}] if expected == "off" else [])


def test_a_gpu_computes_more_in_the_time_that_compiling_takes(monkeypatch):
    short, counts = job(768, *TRAIN, "--train_step=937"), {"train": 3668}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    given = []
    monkeypatch.setattr(tf.config.optimizer, "set_experimental_options", given.append)
    assert skip_costly_compilation(short, TASK, counts) == "off"
    assert skip_costly_compilation(job(768, *TRAIN, "--train_step=14000"), TASK, counts) == "auto"
    assert given == []  # what a GPU computes may gain more by it


def test_what_compiling_costs_is_shared_by_the_batches_of_a_split():
    counts = {"train": 320, "dev": 80}
    arguments = (*TRAIN, "--train_step=100", "--do_eval", "--eval_batch_size=8")
    small, often = job(64, *arguments), job(64, *arguments, "--eval_every_steps=10")
    cost = compilation_cost(small, TASK, "train", counts)
    # The same rows in four times as many batches; ten batches; those eleven times.
    assert compilation_cost(small, TASK, "dev", counts) == pytest.approx(40 * cost)
    assert compilation_cost(often, TASK, "dev", counts) == pytest.approx(40 / 11 * cost)
    assert compilation_cost(small, CHOICES, "train", counts) == cost / 4
    assert compilation_cost(job(128, *arguments), TASK, "train", counts) == cost / 4


@pytest.mark.parametrize(
    "arguments, split, expected",
    (
        ((*TRAIN, "--train_step=96"), "train", 1),  # ends before its batches are sorted
        ((*TRAIN, "--train_step=97"), "train", 7),
        ((*TRAIN, "--num_train_epochs=3"), "train", 1),  # 96 of 1,024 examples
        ((*TRAIN, "--train_step=96", "--do_eval"), "dev", 7),  # which are sorted from the first on
        (("--do_predict", "--max_seq_length=128"), "train", 7),
    ),
)
def test_a_training_without_sorted_batches_has_one_length(arguments, split, expected):
    lengths = np.random.default_rng(0).integers(3, 129, 1024)
    counts = {split: 1024, "train": 1024}
    found = choose_split_boundaries(job(10_000, *arguments), TASK, split, lengths, counts)
    assert len(found) == expected and found[-1] == 128


def test_no_batch_at_all_is_a_cost_too():
    """Errors of such a job are raised where the steps are counted."""
    empty = job(64, *TRAIN, "--num_train_epochs=1", "--do_eval")
    for split in ("train", "dev"):
        cost = compilation_cost(empty, TASK, split, {"train": 1, "dev": 0})
        assert 0 < cost < float("inf")
    assert skip_costly_compilation(empty, TASK, {}) == "auto"


def test_fewer_examples_than_a_batch():
    values = job(64, "--do_train", "--train_batch_size=64", "--num_train_epochs=2").flags
    with refused("--train_batch_size=2 makes a few. Received: 13 examples"):
        training_steps(values, 13)


@pytest.mark.parametrize(
    "flags, warmup, warned",
    (
        ("--num_train_epochs=3", 1000, True),
        ("--num_train_epochs=400", 1000, False),
        ("--num_train_epochs=3 --warmup_proportion=0.1", 3, False),
    ),
)
def test_more_warm_up_than_updates_is_said(flags, warmup, warned):
    """run_race's default of 1,000 updates is more than three passes over 320 questions have."""
    argv = ["--data_dir=data", "--output_dir=output", "--do_train", *flags.split()]
    given = parse(RaceFlags, ["program.py", *argv, "--train_batch_size=32"])
    values = resolve_model_defaults(given, "bert", **unused_steps(given))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert training_steps(values, 320)[1] == warmup
    said = [str(warning.message) for warning in caught]
    assert len(said) == warned
    assert not warned or said[0].startswith("--warmup_step=1000 is more than the 30 updates: the ")
