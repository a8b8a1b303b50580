"""Recomputation: the same numbers and masks as without, less of a forward pass kept."""

import pytest

from bert_tf.layers import TransformerBlock
from tests.support.crosses import slow
from tests.support.tiny_models import (
    assert_close,
    gradients_of,
    make_step,
    random_batch,
)

RATE = 0.3


def assert_same_gradients(kind, share, floor, **options):
    """With everything kept, and with recomputation; ALBERT's block is shared, called again."""
    steps = (make_step(kind, recompute=r, dropout=RATE, **options) for r in ("none", "block"))
    kept, again = (gradients_of(step, random_batch(0)) for step in steps)
    assert again[0] == pytest.approx(kept[0], rel=share)
    assert_close(again[1], kept[1], share, floor)


@pytest.mark.parametrize("kind, parts", (slow("bert", 1), ("albert", 2)))
def test_equal_gradients_in_float64(float64, kind, parts):
    assert_same_gradients(kind, 1e-10, floor=1e-3, gradient_accumulation_steps=parts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, policy, share", (("bert", "float32", 1e-5), ("albert", "mixed_bfloat16", 0.02))
)
def test_equal_gradients_under_xla(kind, policy, share):
    sizes = {"num_hidden_layers": 3}
    assert_same_gradients(kind, share, floor=1e-2, sizes=sizes, policy=policy, xla=True)


KINDS = pytest.mark.parametrize("kind", (slow("bert"), "albert"))


@pytest.mark.parametrize("recompute, runs", (slow("none", 2), ("block", 4)))
@KINDS
def test_blocks_run_again_for_the_gradient(monkeypatch, kind, recompute, runs):
    calls = []
    original = TransformerBlock.call

    def counted(block, *arguments, **options):
        calls.append(block.name)
        return original(block, *arguments, **options)

    monkeypatch.setattr(TransformerBlock, "call", counted)
    gradients_of(make_step(kind, recompute=recompute), random_batch(0))
    assert len(calls) == runs
    assert len(set(calls)) == (2 if kind == "bert" else 1)
