"""Fine-tuning compiles as much as the work ahead pays for."""

import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import BertConfig
from run_scripts.classifier import ClassifierFlags
from run_scripts.flags.compilation import compiling_price, lengths_of_batches, without_xla_if_short
from run_scripts.flags.parser import parse, resolve_model_defaults

TASK = types.SimpleNamespace()
CHOICES = types.SimpleNamespace(rows=4)


def flags(*arguments):
    argv = ["run_classifier.py", "--task_name=nsmc", "--data_dir=d", "--output_dir=o", *arguments]
    return resolve_model_defaults(parse(ClassifierFlags, argv), "bert")


def config(hidden_size):
    return BertConfig(vocab_size=60, hidden_size=hidden_size, num_attention_heads=2)


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
def test_xla_only_where_it_pays(hidden_size, arguments, expected):
    read = {"train": [None] * 3668, "dev": [None] * 400}
    if "--do_train" not in arguments:
        del read["train"]
    values = without_xla_if_short(flags(*arguments), config(hidden_size), TASK, read)
    assert values.xla == expected


def test_a_gpu_computes_more_in_the_time_that_compiling_takes(monkeypatch):
    values, read = flags(*TRAIN, "--train_step=937"), {"train": [None] * 3668}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
    assert without_xla_if_short(values, config(768), TASK, read).xla == "off"
    values = flags(*TRAIN, "--train_step=14000")
    assert without_xla_if_short(values, config(768), TASK, read).xla == "auto"


def test_what_compiling_costs_is_shared_by_the_batches_of_a_split():
    counts = {"train": 320, "dev": 80}
    values = flags(*TRAIN, "--train_step=100", "--do_eval", "--eval_batch_size=8")
    often = flags(
        *TRAIN, "--train_step=100", "--do_eval", "--eval_batch_size=8", "--eval_every_steps=10"
    )
    price = compiling_price(values, config(64), TASK, "train", counts)
    # The same rows in four times as many batches; ten batches; those eleven times.
    assert compiling_price(values, config(64), TASK, "dev", counts) == pytest.approx(40 * price)
    assert compiling_price(often, config(64), TASK, "dev", counts) == pytest.approx(40 / 11 * price)
    assert compiling_price(values, config(64), CHOICES, "train", counts) == price / 4
    assert compiling_price(values, config(128), TASK, "train", counts) == price / 4


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
    examples, counts = types.SimpleNamespace(lengths=lengths), {split: 1024, "train": 1024}
    values = flags(*arguments)
    found = lengths_of_batches(values, config(10_000), TASK, split, examples, counts)
    assert len(found) == expected and found[-1] == 128


def test_no_batch_at_all_is_a_price_too():
    """What is wrong with such a job is said where the steps are counted."""
    values = flags(*TRAIN, "--num_train_epochs=1", "--do_eval")
    for split in ("train", "dev"):
        price = compiling_price(values, config(64), TASK, split, {"train": 1, "dev": 0})
        assert 0 < price < float("inf")
    assert without_xla_if_short(values, config(64), TASK, {}) == values
