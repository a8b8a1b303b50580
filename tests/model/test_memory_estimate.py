"""The estimate of memory: weights are counted exactly, the rest changes with the settings."""

import dataclasses
import math

import pytest

from albert_tf import AlbertConfig
from benchmarks.speed.memory import largest_batch
from bert_tf import BertConfig
from bert_tf.block_costs import TransformerBlockCosts
from bert_tf.costs.flops import block_flops
from bert_tf.memory_estimate import (
    GIB,
    WEIGHT_BYTES,
    count_parts,
    count_weights,
    estimate_bytes,
    memory_line,
    teacher_bytes,
)
from tests.support.tiny_models import tiny_model

CONFIGS = {
    "bert": ("bert", {}),
    "bert, three layers": ("bert", {"num_hidden_layers": 3, "type_vocab_size": 3}),
    "albert": ("albert", {}),
    "albert without a projection": ("albert", {"embedding_size": 32}),
    "albert with groups": ("albert", {"num_hidden_layers": 5, "num_hidden_groups": 3}),
    "albert with inner groups": (
        "albert",
        {"num_hidden_layers": 3, "num_hidden_groups": 2, "inner_group_num": 2},
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_weights_are_counted(name):
    kind, sizes = CONFIGS[name]
    model = tiny_model(kind, **sizes)
    assert count_weights(model.config) == sum(math.prod(v.shape) for v in model.trainable_variables)


class CheapBlock(TransformerBlockCosts):
    """The costs of a block of another kind."""

    count_weights = staticmethod(lambda config: 7)
    flops = staticmethod(lambda config, length, queries: 10 * length + queries)


class CheapConfig(BertConfig):
    block = CheapBlock


def test_a_block_says_what_it_costs():
    config = CheapConfig(vocab_size=9, num_hidden_layers=3)
    assert count_parts(config)["blocks"] == 3 * 7
    assert block_flops(config, length=5, predictions=1) == 2 * (50 + 5) + 50 + 2


BASE = BertConfig.from_preset("base", vocab_size=30522)
ALBERT = AlbertConfig.from_preset("base", vocab_size=30000)


@pytest.mark.parametrize("config", (BASE, ALBERT))
@pytest.mark.parametrize("recompute", ("none", "block"))
def test_more_work_takes_more_memory(config, recompute):
    def estimate(batch=64, length=128, predictions=20, precision="float32", config=config):
        return estimate_bytes(config, batch, length, predictions, precision, recompute)

    update = 7 * WEIGHT_BYTES * count_weights(config)  # a gradient, and all else old and new
    assert update < estimate(batch=1) < estimate()
    for more in ({"batch": 65}, {"length": 129}, {"predictions": 21}):
        assert estimate(**more) > estimate()
    deeper = dataclasses.replace(config, num_hidden_layers=config.num_hidden_layers + 1)
    assert estimate(config=deeper) > estimate()
    assert estimate(precision="bfloat16") == estimate(precision="float16")
    assert recompute == "block" or estimate(precision="bfloat16") < estimate()
    # What depends on the batch is in proportion to it.
    steps = [estimate(batch=batch) for batch in (64, 96, 128)]
    assert steps[1] - steps[0] == pytest.approx(steps[2] - steps[1])


@pytest.mark.parametrize("config", (BASE, ALBERT))
def test_recomputation_keeps_less(config):
    kept, again = (estimate_bytes(config, 32, 512, 77, "float32", r) for r in ("none", "block"))
    assert again < 0.5 * kept
    # Of a single layer there is nothing to save.
    one = dataclasses.replace(config, num_hidden_layers=1)
    kept, again = (estimate_bytes(one, 32, 512, 77, "float32", r) for r in ("none", "block"))
    assert kept <= again < 1.25 * kept


@pytest.mark.parametrize("recompute", ("none", "block"))
def test_attention_by_blocks_keeps_no_scores(recompute):
    """What is left grows with the tokens, however long the rows are."""

    def estimate(batch, length, blockwise):
        sizes = (batch, length, 77 * length // 512)
        return estimate_bytes(BASE, *sizes, "float32", recompute, blockwise=blockwise)

    full, short, long = estimate(32, 512, False), estimate(32, 512, True), estimate(8, 2048, True)
    assert short == pytest.approx(long, rel=1e-3)
    assert long < full < 0.7 * estimate(8, 2048, False)
    # One block of queries is the whole.
    assert estimate(128, 128, True) == estimate(128, 128, False)


# BERT-base, the peak of a process in GiB, as benchmarks/speed/memory.py measured it on a CPU.
MEASURED = (
    (8, 128, 20, "float32", "none", 4.24),
    (8, 128, 20, "bfloat16", "none", 3.62),
    (6, 512, 77, "float32", "none", 7.51),
    (6, 512, 77, "bfloat16", "none", 6.50),
    (64, 128, 20, "float32", "block", 4.32),
    (6, 512, 77, "float32", "block", 4.86),
    (6, 512, 77, "bfloat16", "block", 3.52),
    (48, 512, 77, "float32", "block", 8.37),
    (64, 512, 77, "bfloat16", "block", 10.4),
    (320, 128, 20, "bfloat16", "block", 8.16),
)


@pytest.mark.parametrize("batch, length, predictions, precision, recompute, gib", MEASURED)
def test_estimates_are_near_what_was_measured(
    batch, length, predictions, precision, recompute, gib
):
    estimate = estimate_bytes(BASE, batch, length, predictions, precision, recompute) / GIB
    assert estimate == pytest.approx(gib, rel=0.05 if gib > 7.8 else 0.21)


# BERT-base's widths with two layers, blockwise attention, 4,096 tokens, as above.
MEASURED_BY_BLOCKS = ((8, 512, 2.45), (4, 1024, 2.54), (2, 2048, 2.48), (1, 4096, 2.49))


@pytest.mark.parametrize("batch, length, gib", MEASURED_BY_BLOCKS)
def test_estimates_of_long_rows(batch, length, gib):
    config = dataclasses.replace(BASE, num_hidden_layers=2, max_position_embeddings=length)
    sizes = (batch, length, math.ceil(0.15 * length))
    assert estimate_bytes(config, *sizes, blockwise=True) / GIB == pytest.approx(gib, rel=0.06)


@pytest.mark.parametrize("blockwise, gib", ((True, 0.37), (False, 1.81)))
def test_estimates_of_a_teacher_of_long_rows(blockwise, gib):
    """A row of 4,096 tokens, the same widths; GiB that it added to a process on a CPU."""
    config = BertConfig.from_preset("base", vocab_size=2000)
    config = dataclasses.replace(config, num_hidden_layers=2, max_position_embeddings=4096)
    estimate = teacher_bytes(config, 1, 4096, 20, blockwise=blockwise)
    assert estimate / GIB == pytest.approx(gib, rel=0.25)


def test_the_update_takes_most_of_a_small_batch():
    assert estimate_bytes(BASE, 1, 128, 20) == estimate_bytes(BASE, 4, 128, 20)


def test_largest_batch():
    arguments = (512, 77, "bfloat16", "block")
    batch = largest_batch(12e9, BASE, *arguments)
    assert batch > 60
    assert estimate_bytes(BASE, batch, *arguments) <= 12e9
    assert estimate_bytes(BASE, batch + 1, *arguments) > 12e9
    assert largest_batch(1e9, BASE, *arguments) == 0


def test_line():
    plain, saving = (
        f"{estimate_bytes(BASE, 32, 128, 20, 'bfloat16', r) / GIB:.1f}" for r in ("none", "block")
    )
    start = f"{count_weights(BASE):,} weights; about "
    assert plain != saving
    arguments = (BASE, 32, 128, 20, "bfloat16")
    assert memory_line(*arguments, "none") == (
        f"{start}{plain} GiB of memory per device at 32 x 128 ({saving} with --recompute=block)"
    )
    assert memory_line(*arguments, "block") == (
        f"{start}{saving} GiB of memory per device at 32 x 128 ({plain} without --recompute=block)"
    )
