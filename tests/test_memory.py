"""The estimate of memory: weights are counted exactly, the rest moves as it should."""

import dataclasses
import math

import pytest
from tiny import tiny_model

from albert_tf import AlbertConfig
from bert_tf import BertConfig
from bert_tf.memory import BYTES_PER_WEIGHT, GIB, count_weights, estimate_bytes, memory_line

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


BASE = BertConfig.from_preset("base", vocab_size=30522)
ALBERT = AlbertConfig.from_preset("base", vocab_size=30000)


@pytest.mark.parametrize("config", (BASE, ALBERT))
@pytest.mark.parametrize("recompute", ("none", "block"))
def test_more_work_takes_more_memory(config, recompute):
    def estimate(batch=8, length=128, predictions=20, precision="float32", config=config):
        return estimate_bytes(config, batch, length, predictions, precision, recompute)

    assert BYTES_PER_WEIGHT * count_weights(config) < estimate()
    for more in ({"batch": 9}, {"length": 129}, {"predictions": 21}):
        assert estimate(**more) > estimate()
    deeper = dataclasses.replace(config, num_hidden_layers=config.num_hidden_layers + 1)
    assert estimate(config=deeper) > estimate()
    assert estimate(precision="bfloat16") == estimate(precision="float16") < estimate()
    # What depends on the batch is in proportion to it.
    assert estimate(batch=16) - estimate() == pytest.approx(estimate(batch=24) - estimate(batch=16))


@pytest.mark.parametrize("config", (BASE, ALBERT))
def test_recomputation_keeps_less(config):
    kept, again = (estimate_bytes(config, 32, 512, 77, "float32", r) for r in ("none", "block"))
    assert again < 0.5 * kept
    # Of a single layer there is nothing to save.
    one = dataclasses.replace(config, num_hidden_layers=1)
    kept, again = (estimate_bytes(one, 32, 512, 77, "float32", r) for r in ("none", "block"))
    assert kept <= again < 1.1 * kept


def test_line():
    plain, saving = (
        f"{estimate_bytes(BASE, 8, 128, 20, 'bfloat16', r) / GIB:.1f}" for r in ("none", "block")
    )
    start = f"{count_weights(BASE):,} weights; about "
    assert plain != saving
    arguments = (BASE, 8, 128, 20, "bfloat16")
    assert memory_line(*arguments, "none") == (
        f"{start}{plain} GiB a device at 8 x 128 ({saving} with --recompute=block)"
    )
    assert memory_line(*arguments, "block") == (
        f"{start}{saving} GiB a device at 8 x 128 ({plain} without --recompute=block)"
    )
