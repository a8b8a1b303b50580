"""What both networks of an ELECTRA cost, counted in the model; the sizes of the generator."""

import math

import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.costs.flops import TRAINING_PASSES
from bert_tf.memory_estimate import estimate_bytes
from electra_tf import ElectraConfig, ElectraModel, ReplacedTokensModel, costs
from tests.support.tiny_models import SIZES, products

B, T, P = 3, 16, 4
CASES = ({"embedding_size": 32, "num_hidden_layers": 1}, {"generator_size": 0.5})


def tiny(sizes):
    return ReplacedTokensModel(
        ElectraModel(ElectraConfig(**{**SIZES, "embedding_size": 16, "generator_size": 1, **sizes}))
    )


@pytest.mark.parametrize("sizes", CASES, ids=str)
def test_weights_and_operations(sizes):
    model = tiny(sizes)
    weights = sum(math.prod(v.shape) for v in model.trainable_variables)
    assert costs.count_weights(model.config) == weights
    names = {"input_ids": T, "input_mask": T, "segment_ids": T}
    names |= {"masked_lm_positions": P, "masked_lm_ids": P}
    spec = {name: tf.TensorSpec([B, length], tf.int32) for name, length in names.items()}
    spec["masked_lm_weights"] = tf.TensorSpec([B, P])
    expected = B * costs.training_flops(model.config, T, P) / TRAINING_PASSES
    assert products(model, spec) == expected


def test_memory():
    """More than the discriminator's blocks alone keep, less than two discriminators."""
    config = ElectraConfig.from_preset("base", vocab_size=32000)
    one, both = (f(config, 32, 128, 20) for f in (estimate_bytes, costs.estimate_bytes))
    assert one < both < 2 * one
    line = costs.memory_line(config, 32, 128, 20, "float32", "none")
    assert f"{costs.count_weights(config):,} weights" in line


@pytest.mark.parametrize(
    "name, expected",
    {  # google-research/electra, run_pretraining.py get_generator_config
        "small": (64, 1, 256, 12, 128),
        "base": (256, 4, 1024, 12, 768),
        "large": (256, 4, 1024, 24, 1024),
    }.items(),
)
def test_generators_of_the_paper(name, expected):
    generator = ElectraConfig.from_preset(name, vocab_size=30522).generator
    assert expected == (
        generator.hidden_size, generator.num_attention_heads, generator.intermediate_size,
        generator.num_hidden_layers, generator.embedding_size,
    )  # fmt: skip


@pytest.mark.parametrize("size", (0.0, -1.0, 0.001, 0.8))
def test_a_width_that_heads_do_not_divide(size):
    with pytest.raises(InputError, match="generator_size must be at most 1 and give a width"):
        ElectraConfig(vocab_size=100, generator_size=size)  # 0.8 x 256 is 205, with three heads
