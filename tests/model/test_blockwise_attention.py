"""Attention by blocks of queries: the numbers of the whole one, dropout included; no whole scores.

Shapes: B batch, N heads, Q queries, T tokens, D head size.
"""

import re

import numpy as np
import pytest
import tensorflow as tf

from bert_tf import blockwise_attention as blockwise
from bert_tf.attention import attention, attention_bias
from bert_tf.blockwise_attention import (
    ATTENTION_FUNCTIONS,
    automatic_attention,
    blockwise_attention,
)
from bert_tf.names import BLOCK_QUERIES, BLOCKWISE_TOKENS, is_blockwise
from tests.support.tiny_models import assert_close, gradients_of, make_step, random_batch

B, N, D = 2, 2, 8
RATE = 0.3
NAMES = ("context", "query", "key", "value")


def heads(tokens, queries=None, packed=False, dtype="float64"):
    """Query, key, value, the context's gradient [B, N, Q or T, D] each, and the bias of padding."""
    rng = np.random.default_rng(0)
    queries = queries or tokens
    sizes = (queries, tokens, tokens, queries)
    arrays = [tf.constant(rng.normal(size=(B, N, size, D)), dtype) for size in sizes]
    mask = (np.arange(tokens) < np.array([[tokens], [tokens // 2]])).astype(np.int32)  # [B, T]
    index = np.sort(rng.integers(1, 4, (B, tokens))).astype(np.int32) if packed else None
    bias = attention_bias(mask, index)  # [B, 1, 1 or T, T]
    return arrays, bias[:, :, :queries] if packed else bias


def run(function, arrays, bias, rate=0.0, xla=False, *, unknown_batch=False):
    """The context and the gradients of query, key and value, by name; and the compiled function."""
    seed = tf.constant([1, 2], tf.uint32) if rate else None
    specs = [tf.TensorSpec([None, *x.shape[1:]], x.dtype) for x in arrays]

    @tf.function(jit_compile=xla, input_signature=specs if unknown_batch else None)
    def compute(query, key, value, upstream):
        with tf.GradientTape() as tape:
            tape.watch([query, key, value])
            context = function(query, key, value, bias, rate, seed)
        return context, *tape.gradient(context, [query, key, value], output_gradients=upstream)

    results = [np.asarray(tf.cast(x, "float64")) for x in compute(*arrays)]
    return dict(zip(NAMES, results, strict=True)), compute


# Tokens, queries and packed rows: one block and a query of another, whole blocks, and neither; the
# last block of an encoder, with fewer queries than tokens.
CASES = (
    (BLOCK_QUERIES + 1, None, False, {}),
    (2 * BLOCK_QUERIES, None, True, {}),
    (300, None, True, {"unknown_batch": True}),  # as a SavedModel takes it
    (300, 150, False, {}),
    (300, 150, True, {"xla": True}),
)


@pytest.mark.parametrize("dtype, share", (("float64", 1e-13), ("float32", 1e-5)))
@pytest.mark.parametrize("tokens, queries, packed, options", CASES)
def test_equals_the_whole(tokens, queries, packed, options, dtype, share):
    arrays, bias = heads(tokens, queries, packed, dtype)
    expected, found = (
        run(function, arrays, bias, RATE, **options)[0]
        for function in (attention, blockwise_attention)
    )
    assert_close(found, expected, share, floor=1)


@pytest.mark.parametrize("dtype", ("bfloat16", "float16"))
def test_sixteen_bits_lose_no_more_than_in_the_whole(dtype):
    """Against float64, from the same rounded inputs."""
    arrays, bias = heads(500, packed=True, dtype=dtype)
    exact, _ = run(attention, [tf.cast(x, "float64") for x in arrays], bias, RATE)
    whole, parts = (run(f, arrays, bias, RATE)[0] for f in (attention, blockwise_attention))
    for name, expected in exact.items():
        errors = [np.sqrt(np.mean((x[name] - expected) ** 2)) for x in (whole, parts)]
        assert 0 < errors[1] < 1.1 * errors[0], name


def test_few_queries_are_one_block():
    arrays, bias = heads(40, dtype="float32")
    expected, found = (run(f, arrays, bias, RATE)[0] for f in (attention, blockwise_attention))
    for name in NAMES:
        np.testing.assert_array_equal(found[name], expected[name])


def largest_array(function, tokens):
    """The elements of the largest array in the XLA program of output and gradients."""
    arrays, bias = heads(tokens, dtype="float32")
    _, compute = run(function, arrays, bias, RATE, xla=True)
    text = compute.experimental_get_compiler_ir(*arrays)(stage="optimized_hlo")
    shapes = re.findall(r"\b(?:f32|u32|s32|pred)\[([\d,]+)\]", text)
    return max(np.prod([int(size) for size in shape.split(",")]) for shape in shapes)


def test_no_array_has_all_scores():
    assert largest_array(attention, 600) == B * N * 600 * 600
    assert largest_array(blockwise_attention, 600) == B * N * BLOCK_QUERIES * 600


def test_names_and_the_automatic_choice(monkeypatch):
    assert ATTENTION_FUNCTIONS["blockwise"] is blockwise_attention
    monkeypatch.setattr(blockwise, "attention", lambda *_: "full")
    monkeypatch.setattr(blockwise, "blockwise_attention", lambda *_: "blockwise")
    for tokens in (BLOCKWISE_TOKENS - 1, BLOCKWISE_TOKENS):
        key = tf.zeros([1, 1, tokens, 4])
        chosen = automatic_attention(key[:, :, :3], key, key, None, 0.0, None)
        assert chosen == ("blockwise" if is_blockwise("auto", tokens) else "full")
        assert (chosen == "blockwise") == (tokens == BLOCKWISE_TOKENS)
        assert is_blockwise("blockwise", tokens) and not is_blockwise("full", tokens)
    assert is_blockwise("blockwise", BLOCK_QUERIES + 1)
    assert not is_blockwise("blockwise", BLOCK_QUERIES)  # one block: plain attention


LENGTH = 200
SIZES = {"max_position_embeddings": LENGTH}


def step_gradients(kind, function, **options):
    """`gradients_of` a tiny model with that attention function, on rows of more than a block."""
    step = make_step(kind, sizes=SIZES, dropout=0.1, **options)
    groups = getattr(step.model.encoder, "groups", None) or [step.model.encoder.blocks]
    for block in sum(groups, []):
        block.attention.attention_function = function
    return gradients_of(step, random_batch(0, size=4, length=LENGTH))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, options",
    (
        ("bert", {}),
        ("albert", {"recompute": "block", "gradient_accumulation_steps": 2}),
        ("bert", {"recompute": "block", "xla": True}),
        ("albert", {"xla": True}),
    ),
)
def test_equal_gradients_of_a_model(kind, options):
    expected, found = (
        step_gradients(kind, function, **options) for function in (attention, blockwise_attention)
    )
    assert found[0] == pytest.approx(expected[0], rel=1e-5)
    assert_close(found[1], expected[1], 1e-5, floor=1e-2)
