"""Turns records into batches on the devices.

A `BatchPlan` determines the records of a global batch. The batch is split into equal parts, one per
replica, in the order of the workers. Every worker reads all records, because their order is
shuffled, but parses only its replicas' records.

Shapes: G examples of a global batch, B examples of a replica, N examples parsed at a time,
T tokens, P predictions, S sequences of a packed row.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert_common.cpu import available_cores
from bert_tf.config import EncoderConfig
from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.length_buckets import BUCKET
from bert_tf.input.record_checks import add_derived_features, feature_limits
from create_pretraining_data.instances.dynamic_masking import draw_masks
from create_pretraining_data.instances.mask_processes import MaskProcesses
from create_pretraining_data.records.encoding import encode_record
from create_pretraining_data.records.reader import open_records, parsing_spec
from create_pretraining_data.records.record_format import RecordFormat

# Features that the model reads; other features of a record (token_boundary) are not parsed.
MODEL_FEATURES = (
    "input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids",
    "masked_lm_weights", "segment_index", "position_ids", "sequence_starts",
    "next_sentence_labels", "next_sentence_weights",
)  # fmt: skip

# Held-out records without masks get the same masks each time, whatever the run's seed.
EVALUATION_SEED = 0
# The minimum number of rows to parse and mask at a time; small batches are combined. Masking 8 rows
# takes as long as masking 32, and half as long as masking 128.
ROWS_AT_A_TIME = 128

_DTYPES = {"int": tf.int32, "float": tf.float32}


class MaskDrawing(NamedTuple):
    """The settings for drawing the masks of records without masks."""

    seed: int
    processes: MaskProcesses | None = None  # None: this process draws the masks


def _replica_batches(positioned_records, record_format, config, batch_size, drawing, shard):
    """Turns global batches into the batches of one worker's replicas, one replica after another.

    A global batch has record positions in the global order [G], serialized records [G], and
    optionally the batch's boundary number. The last batch may be short.
    """
    shard = shard or tf.distribute.InputContext()  # one worker with one replica
    replica_size = shard.get_per_replica_batch_size(batch_size)
    own_rows = batch_size // shard.num_input_pipelines
    table = record_format.features()
    # Fills up a short batch with a record without tokens and weights.
    empty = {name: [0] * length for name, (length, _) in table.items()}
    filler = encode_record(empty, record_format)
    parse = _parser(record_format, config, drawing)

    def worker_part(record_positions, records, *bucket):
        """Cuts a global batch, which may be short, to [replicas of the worker, B]."""
        missing = batch_size - tf.size(records)
        whole = tf.concat([records, tf.fill([missing], filler)], axis=0)  # [G]
        numbers = tf.concat([record_positions, tf.zeros([missing], tf.int64)], axis=0)  # [G]
        workers = [
            tf.reshape(values, [shard.num_input_pipelines, -1, replica_size])
            for values in (numbers, whole)
        ]
        part = [values[shard.input_pipeline_id] for values in workers]  # [replicas, B] each
        return *part, *(tf.fill([tf.shape(part[0])[0]], number) for number in bucket)

    def read(record_positions, records, *bucket):
        """Parses [batches, replicas, B] to model features [batches * replicas, B, ...]."""
        features = parse(tf.reshape(record_positions, [-1]), tf.reshape(records, [-1]))
        features = {
            name: tf.reshape(value, [-1, replica_size, *value.shape[1:]])
            for name, value in features.items()
        }
        return {**features, BUCKET: tf.reshape(bucket[0], [-1])} if bucket else features

    processes = drawing.processes
    dataset = (
        positioned_records.map(worker_part)
        .batch(-(-ROWS_AT_A_TIME // own_rows))
        # Keeps every process busy, with one more batch parsed for the first that becomes idle.
        .map(read, processes.count + 1 if processes else tf.data.AUTOTUNE, deterministic=True)
        .unbatch()
        .prefetch(tf.data.AUTOTUNE)
    )
    # Private threads wait for the processes, so that the training step's threads do not.
    return set_options(dataset, available_cores() + processes.count if processes else None)


def _parser(record_format, config, drawing):
    """Returns a function: record_positions [N], serialized records [N] -> features [N, ...]."""
    spec = parsing_spec(record_format)
    if record_format.masking is None:
        spec = {name: spec[name] for name in MODEL_FEATURES if name in spec}
    below = feature_limits(config, record_format)

    def parse(record_positions, records):
        features = {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in tf.io.parse_example(records, spec).items()
        }
        # Checked here because indices out of range raise no error on a GPU or under XLA.
        checked = add_derived_features(features)
        checks = [
            tf.debugging.Assert(
                tf.reduce_all((checked[name] >= 0) & (checked[name] < limit)),
                [f"{name} must be in 0..{limit - 1}"],
            )
            for name, (limit, _) in below.items()
        ]
        with tf.control_dependencies(checks):
            features = {name: tf.identity(value) for name, value in features.items()}
        if record_format.masking is not None:
            features = _draw_masks(features, record_positions, record_format, drawing)
        if record_format.sentence_label and not record_format.packed_sequences:
            # 1, or 0 for a record without tokens, which only fills up a batch.
            some_token = tf.reduce_any(features["input_mask"] > 0, axis=1)
            features["next_sentence_weights"] = tf.cast(some_token, tf.float32)  # [N]
        return features

    return parse


def _draw_masks(stored, record_positions, record_format, drawing):
    """Masks parsed records [N, ...] with the NumPy code that also creates static masks."""
    table = record_format.with_masks().features()
    table = {name: table[name] for name in MODEL_FEATURES if name in table}
    names = sorted(stored)
    draw_here_or_there = drawing.processes.draw_masks if drawing.processes else draw_masks

    @tf.autograph.experimental.do_not_convert
    def draw(record_positions, *values):
        stored = dict(zip(names, values, strict=True))
        return draw_here_or_there(stored, record_positions, record_format, drawing.seed, [*table])

    values = tf.numpy_function(
        draw,
        [record_positions, *(stored[name] for name in names)],
        [_DTYPES[k] for _, k in table.values()],
    )
    return {
        name: tf.ensure_shape(value, [None, length])
        for (name, (length, _)), value in zip(table.items(), values, strict=True)
    }


def training_dataset(
    plan: BatchPlan, start_step: int = 0, shard: tf.distribute.InputContext | None = None
) -> tf.data.Dataset:
    """Returns the endless shuffled batches of a plan, after the first `start_step` global batches.

    `shard` identifies this worker; None means one worker with one replica.

    Returns:
        A dataset of dicts of [B, ...] tensors (int32, float32), where B is the plan's batch size
        divided by the number of replicas. Each global batch has one element per replica of this
        worker. With boundaries, elements also have `BUCKET`, the batch's boundary number.
    """
    batches = _replica_batches(
        plan.batches(start_step), plan.record_format, plan.model_config, plan.batch_size,
        MaskDrawing(plan.seed, plan.mask_processes), shard,
    )  # fmt: skip
    # If the dataset could end, several workers would ask each other before every step whether it
    # has ended, and lose the static batch size.
    endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    return batches.apply(endless)


def evaluation_dataset(
    files: Sequence[str],
    record_format: RecordFormat,
    config: EncoderConfig,
    batch_size: int,
    max_batches: int,
    shard: tf.distribute.InputContext | None = None,
) -> tf.data.Dataset:
    """Batches every record once, in order; the last batch is filled up with examples of weight 0.

    The elements are as in `training_dataset`, for at most `max_batches` global batches. Records
    without masks get the same masks each time.
    """
    drawing = MaskDrawing(EVALUATION_SEED)
    batches = open_records(files).take(max_batches * batch_size).enumerate().batch(batch_size)
    return _replica_batches(batches, record_format, config, batch_size, drawing, shard)


def most_frequent_share(
    files: Sequence[str],
    record_format: RecordFormat,
    config: EncoderConfig,
    batch_size: int,
    max_batches: int,
) -> float:
    """Computes the accuracy, in 0..1, of always predicting the most frequent masked token.

    This is the unigram baseline. Takes the arguments of `evaluation_dataset`.
    """
    counts = np.zeros(0, np.int64)  # [at most V]
    dataset = evaluation_dataset(files, record_format, config, batch_size, max_batches)
    for features in dataset.as_numpy_iterator():
        ids = features["masked_lm_ids"][features["masked_lm_weights"] > 0]
        longer = np.bincount(ids, minlength=len(counts))
        longer[: len(counts)] += counts
        counts = longer
    return float(counts.max() / counts.sum()) if counts.sum() else 0.0


def set_options(dataset: tf.data.Dataset, private_threads: int | None = None) -> tf.data.Dataset:
    """Turns off a dataset's tf.data tuner, and gives it private threads if requested.

    The tuner's thread sleeps for up to a minute at a time, and releasing an iterator waits for the
    thread's end, so every program would idle that long after its last step. Without the tuner, the
    number of threads for maps follows from the number of cores. Prefetching with `tf.data.AUTOTUNE`
    has a separate tuner, which stays on.
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    if private_threads is not None:
        options.threading.private_threadpool_size = private_threads
    return dataset.with_options(options)
