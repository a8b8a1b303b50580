"""Recomputation: the same numbers and masks as without, less of a forward pass kept."""

import re

import numpy as np
import pytest

from bert_tf.layers import TransformerBlock
from tests.support.crosses import slow
from tests.support.tiny_models import (
    ProbedStep,
    assert_close,
    gradients_of,
    make_step,
    random_batch,
    split_batch,
    tensors,
    training_state,
    two_devices,
)

RATE = 0.3

# ALBERT's block is shared: called twice.
SIZES = {"num_hidden_layers": 2}


def both(kind, sizes=SIZES, **options):
    """Sums and gradients of the same model with everything kept, and with recomputation."""
    steps = (
        make_step(kind, recompute=recompute, sizes=sizes, dropout=RATE, **options)
        for recompute in ("none", "block")
    )
    return [gradients_of(step, random_batch(0)) for step in steps]


@pytest.mark.parametrize(
    "kind, parts", (slow("bert", 1), ("albert", 2), slow("bert", 2), slow("albert", 1))
)
def test_equal_gradients_in_float64(float64, kind, parts):
    kept, again = both(kind, gradient_accumulation_steps=parts)
    assert again[0] == pytest.approx(kept[0], rel=1e-12)
    assert_close(again[1], kept[1], 1e-10, floor=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, layers, policy, share",
    (
        ("albert", 2, "float32", 1e-5),
        ("bert", 3, "float32", 1e-5),
        ("albert", 3, "float32", 1e-5),
        ("albert", 3, "mixed_bfloat16", 0.02),
    ),
)
def test_equal_gradients_under_xla(kind, layers, policy, share):
    kept, again = both(kind, {"num_hidden_layers": layers}, policy=policy, xla=True)
    assert again[0] == pytest.approx(kept[0], rel=share)
    assert_close(again[1], kept[1], share, floor=1e-2)


KINDS = pytest.mark.parametrize("kind", (slow("bert"), "albert"))


@pytest.mark.slow
@KINDS
def test_without_dropout_it_is_off(kind):
    """The comparisons above would hold if nothing were dropped at all."""
    dropped, whole = (
        gradients_of(make_step(kind, recompute="block", sizes=SIZES, dropout=rate), random_batch(0))
        for rate in (RATE, 0.0)
    )
    assert dropped[0]["masked_lm_loss"] != pytest.approx(whole[0]["masked_lm_loss"], rel=1e-6)


@pytest.mark.slow
@KINDS
def test_masks_are_drawn_again_and_differ_between_calls(kind):
    # The last layer runs at some positions only: three others have masks of the same shapes.
    sizes = {"num_hidden_layers": 4}
    step = make_step(kind, step_class=ProbedStep, recompute="block", sizes=sizes, dropout=RATE)
    batch = random_batch(0, padding=False)  # whose attention contains zeros too
    results = step(tensors(batch))
    masks = [results[f"dropped_{i}"].numpy() for i in range(step.count)]
    # The embeddings' mask, three of each layer; then those again, the last layer's first.
    assert step.count == 1 + 12 + 12
    layers, again = ([masks[s + i : s + i + 3] for i in (0, 3, 6, 9)] for s in (1, 13))
    for first, second in zip(layers, reversed(again), strict=True):
        for one, other in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, other)
    for one, other in ((0, 1), (1, 2), (0, 2)):
        for first, second in zip(layers[one], layers[other], strict=True):
            assert 0.5 < (first == second).mean() < 0.66  # by chance 0.58


@pytest.mark.parametrize("recompute, runs", (slow("none", 2), ("block", 4)))
@KINDS
def test_blocks_run_again_for_the_gradient(monkeypatch, kind, recompute, runs):
    calls = []
    original = TransformerBlock.call

    def counted(block, *arguments, **options):
        calls.append(block.name)
        return original(block, *arguments, **options)

    monkeypatch.setattr(TransformerBlock, "call", counted)
    gradients_of(make_step(kind, recompute=recompute, sizes=SIZES), random_batch(0))
    assert len(calls) == runs
    assert len(set(calls)) == (2 if kind == "bert" else 1)


@pytest.mark.slow
def test_xla_keeps_the_second_run():
    """XLA could notice that the block is computed twice, and keep the first results after all."""
    dots = {}
    for recompute in ("none", "block"):
        step = make_step(recompute=recompute, sizes=SIZES, dropout=RATE, xla=True)
        dots[recompute] = count_dots(step, random_batch(0))
    # Query, key, value, scores, context, output, and two of the feed-forward part.
    assert dots["block"] - dots["none"] == 2 * 8


def count_dots(step, batch):
    """How many matrix products the compiled forward and backward pass has."""
    seen = {}
    compiled = step.forward_backward

    def remember(*arguments):
        make_text = compiled.experimental_get_compiler_ir(*arguments, taught=())
        seen["text"] = make_text(stage="optimized_hlo")
        return compiled(*arguments)

    step.forward_backward = remember
    gradients_of(step, batch)
    return len(re.findall(r" dot\(|custom_call_target=\"__onednn\$matmul", seen["text"]))


@pytest.mark.slow
def test_whole_steps_on_two_devices():
    """Everything at once: parts, devices, a shared block, dropout."""
    states = []
    for recompute in ("none", "block"):
        options = {"recompute": recompute, "gradient_accumulation_steps": 2, "dropout": RATE}
        step = make_step("albert", "lamb", strategy=two_devices(), **options)
        for i in range(2):
            step(split_batch(random_batch(i, size=16), step.strategy))
        states.append({name: values[1] for name, values in training_state(step).items()})
    assert_close(states[1], states[0], 1e-4, floor=1e-3)
