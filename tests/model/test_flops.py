"""The operations of a step by formula equal those of the model's matrix products; known cards."""

import pytest
import tensorflow as tf

from benchmarks.speed.devices.models import find_card
from bert_tf import BertConfig
from bert_tf.costs.cards import CARDS
from bert_tf.costs.flops import forward_flops, training_flops
from tests.support.crosses import slow
from tests.support.tiny_models import products, tiny_model

B, T, P, S = 3, 16, 4, 2


@pytest.mark.parametrize(
    "kind, sizes",
    (
        ("bert", {}),
        ("bert", {"num_hidden_layers": 3, "intermediate_size": 80}),
        ("albert", {}),
        ("albert", {"embedding_size": 32}),
    ),
    ids=str,
)
@pytest.mark.parametrize("packed", (slow(False), True))
def test_forward(kind, sizes, packed):
    model = tiny_model(kind, **sizes)
    names = ["input_ids", "input_mask", "segment_ids"] + ["segment_index", "position_ids"] * packed
    spec = {name: tf.TensorSpec([B, T], tf.int32) for name in names}
    spec["masked_lm_positions"] = tf.TensorSpec([B, P], tf.int32)
    if packed:
        spec["sequence_starts"] = tf.TensorSpec([B, S], tf.int32)
    expected = B * forward_flops(model.config, T, P, S if packed else 1)
    assert products(model, spec) == expected


def test_training_is_near_the_usual_six_operations_a_weight_and_token():
    """Those of the blocks of BERT-base, and attention (arXiv:2204.02311, appendix B)."""
    config = BertConfig.from_preset("base", vocab_size=30522)
    length = 512
    usual = 6 * 12 * (12 * 768**2) * length + 12 * 12 * 768 * length**2
    heads = 6 * 77 * (768 * 768 + 768 * 30522)
    ours = training_flops(config, length, 77)
    assert 0.90 * (usual + heads) < ours < 0.97 * (usual + heads)  # the last block is run at 78


@pytest.mark.parametrize(
    "name, key",
    {
        "NVIDIA A100-SXM4-80GB": "a100-80gb",
        "NVIDIA A100-PCIE-40GB": "a100-40gb",
        "NVIDIA H100 80GB HBM3": "h100",
        "NVIDIA H100 PCIe": "h100-pcie",
        "NVIDIA H200": "h200",
        "NVIDIA L4": "l4",
        "NVIDIA L40S": "l40s",
        "NVIDIA GeForce RTX 4090": "rtx4090",
        "Tesla V100-SXM2-16GB": None,
        "NVIDIA GeForce RTX 3090 Ti": None,
        "NVIDIA GeForce RTX 4090 Laptop GPU": None,
        "NVIDIA GeForce RTX 4090 D": None,
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb": None,
        "": None,
    }.items(),
)
def test_cards(name, key):
    assert find_card(name) is (CARDS[key] if key else None)
