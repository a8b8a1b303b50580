"""Turns records into batches on the devices.

A `BatchPlan` decides which records a global batch has. The batch is cut into equal parts, one
for every replica, in the order of the workers. Every worker reads all records, because their order
is shuffled, but parses only those of its replicas.

Shapes: G examples of a global batch, B of a replica's, T tokens, P predictions, S sequences of a
packed row.
"""

import numpy as np
import tensorflow as tf

from bert_tf.input.length_buckets import BUCKET
from bert_tf.input.record_checks import add_derived_features, feature_limits
from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.dynamic_masking import mask_records
from create_pretraining_data.records.encoding import encode_record
from create_pretraining_data.records.reader import open_records, parsing_spec

# Features that the model reads; others of a record (token_boundary) are not parsed.
MODEL_FEATURES = (
    "input_ids",
    "input_mask",
    "segment_ids",
    "masked_lm_positions",
    "masked_lm_ids",
    "masked_lm_weights",
    "segment_index",
    "position_ids",
    "sequence_starts",
    "next_sentence_labels",
    "next_sentence_weights",
)

# Held-out records without masks get the same masks each time, whatever the run's seed is.
EVALUATION_SEED = 0

_DTYPES = {"int": np.int32, "float": np.float32}


def _replica_batches(positioned_records, record_format, config, batch_size, mask_seed, shard):
    """Global batches -> the batches of one worker's replicas, one replica after another.

    Args:
        positioned_records: a dataset of tuples: record positions in the global order [G],
            serialized records [G], perhaps the batch's boundary. The last batch may be short.
    """
    shard = shard or tf.distribute.InputContext()  # one worker with one replica
    replica_size = shard.get_per_replica_batch_size(batch_size)
    table = record_format.features()
    # Fills up a short batch; it has no token and no weight.
    empty = {name: [0] * length for name, (length, _) in table.items()}
    filler = encode_record(empty, record_format)
    parse = _parser(record_format, config, replica_size, mask_seed)

    def worker_part(record_positions, records, *bucket):
        """A global batch, perhaps the last one, which is short -> [replicas of the worker, B]."""
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
        """[B] -> model features."""
        features = parse(record_positions, records)
        return {**features, BUCKET: bucket[0]} if bucket else features

    return (
        positioned_records.map(worker_part)
        .unbatch()
        .map(read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(tf.data.AUTOTUNE)
    )


def _parser(record_format, config, batch_size, mask_seed):
    """Returns a function: record_positions [B], serialized records [B] -> features [B, ...]."""
    spec = parsing_spec(record_format)
    if record_format.masking is None:
        spec = {name: spec[name] for name in MODEL_FEATURES if name in spec}
    below = feature_limits(config, record_format)

    def parse(record_positions, records):
        features = {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in tf.io.parse_example(records, spec).items()
        }
        # On a GPU, and under XLA, an index out of range raises nothing.
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
            features = _draw_masks(features, record_positions, record_format, batch_size, mask_seed)
        if record_format.sentence_label and not record_format.packed_sequences:
            # 1, but 0 where there is no token: such a record fills up a batch.
            some_token = tf.reduce_any(features["input_mask"] > 0, axis=1)
            features["next_sentence_weights"] = tf.cast(some_token, tf.float32)  # [B]
        return features

    return parse


def _draw_masks(stored, record_positions, record_format, batch_size, seed):
    """Masks parsed records with the NumPy code that also creates static masks.

    A mask depends on the seed and on the record's position in the global order: it differs from
    epoch to epoch, but not with the number of devices.
    """
    table = record_format.with_masks().features()
    table = {name: table[name] for name in MODEL_FEATURES if name in table}
    names = sorted(stored)
    run_key = derive_keys(np.uint64(seed), 0)

    def draw(record_positions, *values):
        keys = derive_keys(run_key, record_positions)
        features = mask_records(dict(zip(names, values, strict=True)), record_format, keys)
        return [features[name].astype(_DTYPES[table[name][1]]) for name in table]

    values = tf.numpy_function(
        draw,
        [record_positions, *(stored[name] for name in names)],
        [_DTYPES[k] for _, k in table.values()],
    )
    return {
        name: tf.ensure_shape(value, [batch_size, length])
        for (name, (length, _)), value in zip(table.items(), values, strict=True)
    }


def training_dataset(plan, start_step=0, shard=None):
    """The endless shuffled batches of a plan, without the first `start_step` ones.

    Args:
        plan: a `bert_tf.input.batch_plan.BatchPlan`.
        start_step: global batches to skip.
        shard: a `tf.distribute.InputContext` that says which worker this is; without it there
            is one worker with one replica.

    Returns:
        A dataset of dicts of [B, ...] tensors (int32, float32), where B is the plan's batch size
        divided by the number of replicas: for each global batch one element for every replica of
        this worker. With boundaries they also have `BUCKET`, the number of the batch's boundary.
    """
    position, index = plan.locate_batch(start_step)
    if plan.boundaries:
        batches = plan.sorted_windows(position).skip(index)
    else:
        batches = plan.numbered_records(position).batch(plan.batch_size)
    batches = _replica_batches(
        batches, plan.record_format, plan.model_config, plan.batch_size, plan.seed, shard
    )
    # If the dataset could end, several workers would ask one another before every step whether it
    # has, and forget the size of a batch.
    endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    return batches.apply(endless)


def evaluation_dataset(files, record_format, config, batch_size, max_batches, shard=None):
    """Every record once, in order; the last batch is filled up with examples of weight 0.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`; records without masks get the same ones each time.
        config: the model's configuration, for the checks of ids.
        batch_size: examples of a global batch.
        max_batches: the number of batches after which to stop.
        shard: as for `training_dataset`.

    Returns:
        A dataset like that of `training_dataset`, but finite.
    """
    batches = open_records(files).take(max_batches * batch_size).enumerate().batch(batch_size)
    return _replica_batches(batches, record_format, config, batch_size, EVALUATION_SEED, shard)


def distribute_training(strategy, plan, start_step=0):
    """The batches of `training_dataset`, distributed to the replicas: dicts for `strategy.run`."""
    # The workers' pipelines keep batches ready in host memory (`prefetch`, as many as tf.data
    # finds useful); a strategy copies one batch ahead to each of its devices, except the default
    # strategy, whose step copies its own batch.
    return strategy.distribute_datasets_from_function(
        lambda context: training_dataset(plan, start_step, context)
    )


def distribute_evaluation(strategy, files, record_format, config, batch_size, max_batches):
    """The batches of `evaluation_dataset`, distributed to the replicas."""
    return strategy.distribute_datasets_from_function(
        lambda context: evaluation_dataset(
            files, record_format, config, batch_size, max_batches, context
        )
    )


def most_frequent_share(files, record_format, config, batch_size, max_batches):
    """The unigram baseline: the accuracy, in 0..1, of predicting the most frequent masked piece.

    The arguments are those of `evaluation_dataset`.
    """
    counts = np.zeros(0, np.int64)  # [at most V]
    dataset = evaluation_dataset(files, record_format, config, batch_size, max_batches)
    for features in dataset.as_numpy_iterator():
        ids = features["masked_lm_ids"][features["masked_lm_weights"] > 0]
        longer = np.bincount(ids, minlength=len(counts))
        longer[: len(counts)] += counts
        counts = longer
    return float(counts.max() / counts.sum()) if counts.sum() else 0.0
