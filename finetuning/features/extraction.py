"""Extracts features: the output vectors of an encoder's layers for texts.

Shapes: B batch, T tokens of a row or a batch, L requested layers, H hidden.
"""

import collections
import functools
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import starmap
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from bert_common.progress import progress
from bert_tf.encoder import run_inside
from bert_tf.layers import infer_block
from bert_tf.names import BLOCKWISE_TOKENS
from finetuning.examples import LENGTH_STEP
from finetuning.heads import POOLINGS
from finetuning.inputs import ROW_INPUTS, InputRow, pad_rows
from tokenization.base import TokenizerInterface

# TensorFlow's own threads leave gaps between small operations, which other batches fill. 6,000
# reviews in batches of 32 on two cores take 5.1 s one batch at a time, 3.8 s with 2, 3.7 s with 3.
BATCHES_AT_ONCE = 3

# Without a batch size, batches are filled up to this many tokens, padding included, so that short
# rows make matrices as large as long rows do. 20,000 reviews, 23 tokens on average, on two cores
# take 14.8 s in batches of 32, 13.2 s with 1,024 tokens, 12.7 s with 2,048, 12.9 s with 4,096.
PIECES_OF_BATCH = 2048

# Batches that run at once have at most this many tokens, padding included, unless a single one has
# more. This bounds memory, and long batches leave no gaps: with two of 2,048 tokens the reviews
# take 12.7 s, with three 13.2 s. BERT-base needs about 25 MiB for 1,024 tokens.
PIECES_AT_ONCE = 4096

# Rows are sorted by length within groups whose output has at most this many values (512 MiB),
# because a group is held in memory.
MAX_VALUES = 2**27


def word_vectors(
    encoder: keras.Model, tokenizer: TokenizerInterface, words: Sequence[str]
) -> np.ndarray:
    """Returns context-free vectors of words, rows of the embedding table: float32 [words, E].

    E is the configuration's `embedding_size`. A word of several tokens has the mean of their
    vectors; a word without tokens raises an `InputError`.
    """
    table = np.asarray(encoder.embeddings.word_embeddings, np.float32)  # [V, E]
    vectors = []
    for number, word in enumerate(words, 1):
        ids = tokenizer.encode(word)
        if not ids:
            raise InputError(f"a word must have a token. Received: {word!r}, number {number}")
        vectors.append(table[ids].mean(axis=0))
    return np.stack(vectors)


def extract(
    encoder: keras.Model,
    rows: Sequence[InputRow],
    layers: Sequence[int],
    pooling: str,
    batch_size: int | None,
    pad_id: int = 0,
    *,
    max_values: int = MAX_VALUES,
    compute: Any = None,
) -> Iterator[np.ndarray]:
    """Computes features of rows; rows of about equal length share a batch.

    Args:
        layers: indices of layers in the order requested, as papers count them: 0 for the embedding
            output, 1 for the first layer, -1 for the last.
        pooling: a key of `finetuning.heads.POOLINGS`, or "none".
        batch_size: the largest B; None: as many rows as make a batch of `PIECES_OF_BATCH` tokens.
        max_values: the maximum number of output values in memory, unless one row alone has more.
        compute: `pooled_layers` as a graph for batches of any length, if the caller keeps one;
            None: a graph is made for the lengths below `BLOCKWISE_TOKENS`, and for each longer one.

    Yields:
        float32 [L, H] for each row, in order; with the pooling "none" [T, L, H].
    """
    size = len(layers) * encoder.config.hidden_size

    @functools.cache
    def graph(length):
        # Traced here in the caller's thread, because other threads would trace it again. A graph
        # does not compute the layers above the requested ones.
        spec = dict.fromkeys(ROW_INPUTS, tf.TensorSpec([None, length], tf.int32))
        of_batch = functools.partial(pooled_layers, encoder, layers, pooling)
        traced = compute or tf.function(of_batch, input_signature=[spec])
        return traced.get_concrete_function()

    def prepare(batch):
        longest = len(batch[0].ids)
        if compute is None:  # lengths are rounded up so that batches have only a few shapes
            longest = -(-longest // LENGTH_STEP) * LENGTH_STEP
            longest = min(longest, encoder.config.max_position_embeddings)
        # Making a graph takes as long as computing hundreds of short rows.
        known = longest if longest >= BLOCKWISE_TOKENS else None
        return graph(known), pad_rows(batch, longest, pad_id)

    with (
        progress("computing features", sum(len(row.ids) for row in rows), "tokens") as bar,
        ThreadPoolExecutor(BATCHES_AT_ONCE, "features") as pool,
    ):
        for group in _groups(rows, size, pooling == "none", max_values):
            # The longest first, so that running out of memory shows at once.
            order = sorted(range(len(group)), key=lambda i: -len(group[i].ids))
            features: list[Any] = [None] * len(group)
            batches = _batches(order, [len(row.ids) for row in group], batch_size)
            inputs = (prepare([group[i] for i in indices]) for indices in batches)
            # A thread for a single batch would add a tenth to the time of a short text.
            outputs = _several_at_once(pool, inputs) if batches[1:] else starmap(_run, inputs)
            for indices, values in zip(batches, outputs, strict=True):
                for i, value in zip(indices, values, strict=True):
                    # A copy: a view would keep the whole batch in memory.
                    features[i] = value[: len(group[i].ids)].copy() if pooling == "none" else value
                bar.update(sum(len(group[i].ids) for i in indices))
            yield from features


def _batches(order, lengths, batch_size):
    """Cuts `order`, longest row first, into batches of `batch_size` or `PIECES_OF_BATCH` tokens."""
    batches, start = [], 0
    while start < len(order):
        size = batch_size or max(1, PIECES_OF_BATCH // lengths[order[start]])
        batches.append(order[start : start + size])
        start += size
    return batches


def _several_at_once(pool, inputs):
    """Yields the outputs of `inputs`, (graph, batch) pairs, in order; computes several at once.

    Only the next batch is prepared in advance. An error in a thread is raised here.
    """
    running: collections.deque[tuple[int, Any]] = collections.deque()  # (pieces, future), in order
    for graph, batch in inputs:
        pieces = batch["input_ids"].size
        while running and sum(count for count, _ in running) + pieces > PIECES_AT_ONCE:
            yield running.popleft()[1].result()
        running.append((pieces, pool.submit(_run, graph, batch)))
    while running:
        yield running.popleft()[1].result()


def _run(graph, batch):
    return graph(batch).numpy()


def _groups(rows, size, every_piece, max_values):
    """Yields lists of rows whose features have at most `max_values` values, or of a single row."""
    group: list[InputRow] = []
    total = 0
    for row in rows:
        count = size * len(row.ids) if every_piece else size
        if group and total + count > max_values:
            yield group
            group, total = [], 0
        group.append(row)
        total += count
    if group:
        yield group


def pooled_layers(
    encoder: keras.Model, layers: Sequence[int], pooling: str, batch: Mapping[str, Any]
) -> tf.Tensor:
    """Computes features of a batch [B, T], float32 [B, L, H]; with pooling "none" [B, T, L, H]."""
    states = run_inside(encoder, batch, call_block=infer_block).hidden_states
    values = tf.stack([tf.cast(states[i], tf.float32) for i in layers], axis=2)  # [B, T, L, H]
    return values if pooling == "none" else POOLINGS[pooling](values, batch["input_mask"])
