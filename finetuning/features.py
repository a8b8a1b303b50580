"""Runs an encoder over texts and hands out what its layers make of them.

Shapes: B batch, T pieces of a row or a batch, L layers asked for, H hidden.
"""

import functools

import tensorflow as tf

from bert_common.progress import progress
from finetuning.inputs import pad_rows

# Batches are as long as their longest row, up to a multiple of it, so that few lengths are
# compiled.
LENGTH_STEP = 8

# Rows are sorted inside windows of so many numbers of output, 512 MiB, which memory has to hold.
WINDOW_NUMBERS = 2**27


def mean_pooling(values, mask):
    """[B, T, L, H] -> [B, L, H]: the mean over all pieces, [CLS] and [SEP] among them."""
    mask = tf.cast(mask, values.dtype)[:, :, None, None]  # [B, T, 1, 1]
    return tf.reduce_sum(values * mask, axis=1) / tf.reduce_sum(mask, axis=1)


def max_pooling(values, mask):
    """[B, T, L, H] -> [B, L, H]: the largest over all pieces, [CLS] and [SEP] among them."""
    mask = tf.cast(mask, tf.bool)[:, :, None, None]  # [B, T, 1, 1]
    return tf.reduce_max(tf.where(mask, values, values.dtype.min), axis=1)


POOLINGS = {
    "mean": mean_pooling,
    "cls": lambda values, mask: values[:, 0],
    "max": max_pooling,
    "none": lambda values, mask: values,
}


def extract(encoder, rows, layers, pooling, batch_size, pad_id=0, window=WINDOW_NUMBERS):
    """Computes features of rows, batches of about equal length together.

    Args:
        encoder: a `BertModel` or an `AlbertModel`.
        rows: `finetuning.inputs.Row`s.
        layers: numbers of layers, 0 for the first, -1 for the last, in the order wanted.
        pooling: a key of `POOLINGS`.
        batch_size: the largest B.
        pad_id: fills batches; the model does not see it.
        window: how many numbers of output are in memory at most, beside one row's.

    Yields:
        For each row, in order, float32 [L, H]; with the pooling "none" [T, L, H].
    """
    compiled = functools.cache(lambda length: _compile(encoder, layers, pooling, length))
    size = len(layers) * encoder.config.hidden_size
    with progress("computing features", sum(len(row.ids) for row in rows), "pieces") as bar:
        for part in _windows(rows, size, pooling == "none", window):
            # The longest first: what does not fit into memory shows at once.
            order = sorted(range(len(part)), key=lambda i: -len(part[i].ids))
            found = [None] * len(part)
            for start in range(0, len(order), batch_size):
                numbers = order[start : start + batch_size]
                batch = [part[i] for i in numbers]
                longest = -(-len(batch[0].ids) // LENGTH_STEP) * LENGTH_STEP
                longest = min(longest, encoder.config.max_position_embeddings)
                values = compiled(longest)(pad_rows(batch, longest, pad_id)).numpy()
                for i, row, value in zip(numbers, batch, values, strict=True):
                    # A copy: a view would keep the whole batch in memory.
                    found[i] = value[: len(row.ids)].copy() if pooling == "none" else value
                bar.update(sum(len(row.ids) for row in batch))
            yield from found


def _windows(rows, size, every_piece, limit):
    """Cuts rows into lists whose features are at most `limit` numbers; one row at least."""
    part, total = [], 0
    for row in rows:
        numbers = size * len(row.ids) if every_piece else size
        if part and total + numbers > limit:
            yield part
            part, total = [], 0
        part.append(row)
        total += numbers
    if part:
        yield part


def _compile(encoder, layers, pooling, length):
    """The pooled layers of a batch as a graph: layers above those asked for are not computed."""
    spec = tf.TensorSpec([None, length], tf.int32)
    names = ("input_ids", "input_mask", "segment_ids")

    @tf.function(input_signature=[dict.fromkeys(names, spec)])
    def run(batch):
        outputs = encoder(batch, training=False, return_all_layers=True)["encoder_outputs"]
        values = tf.stack([tf.cast(outputs[i], tf.float32) for i in layers], axis=2)
        return POOLINGS[pooling](values, batch["input_mask"])

    return run
