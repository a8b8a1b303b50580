"""Feeds training records to the devices, in an order that only seed and position decide.

There is one global order of records, cut into global batches. A global batch is cut into equal
consecutive parts, one for every replica: the first worker's replicas have the first ones. Every
worker reads all records, because their order is shuffled, but parses its own alone.

Shapes: G examples of a global batch, B of a replica's, T tokens, P predictions, S sequences of a
packed row.
"""

import functools

import numpy as np
import tensorflow as tf

from bert_tf.input.length_buckets import BUCKET, WINDOW, sort_windows
from bert_tf.input.record_checks import limits, with_implied
from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.dynamic_masking import mask_records
from create_pretraining_data.records.encoding import encode_record
from create_pretraining_data.records.reader import (
    compression_of,
    count_records,
    open_records,
    parsing_spec,
)

# Records held back for shuffling, beside the shuffled order of the files: at 128 tokens a
# record about 50 MB. (google-research/bert holds 100, which leaves neighbours together.)
SHUFFLE_BUFFER = 20_000

# Files read in turn, so that a batch mixes them.
CYCLE_LENGTH = 16

# Features that the model reads; what else a record holds (token_boundary) is left in the file.
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


# Held-out records without masks get the same ones each time, whatever the run's seed is.
EVALUATION_SEED = 0

_DTYPES = {"int": np.int32, "float": np.float32}


def _in_order(files, read, examples, seed, position):
    """The endless order of training, from a position on.

    Args:
        files: how many files there are.
        read: from the index of a file to a dataset with an element for each of its records.
        examples: how many records the files hold.
        seed: decides the order.
        position: how many elements to leave out.

    Returns:
        A dataset of the elements of `read`.
    """

    def one_epoch(epoch):
        order = tf.cast(seed, tf.int64) * 1_000_003 + epoch  # another seed, another series
        indices = tf.data.Dataset.range(files).shuffle(
            files, seed=order, reshuffle_each_iteration=False
        )
        records = indices.interleave(
            read,
            cycle_length=min(CYCLE_LENGTH, files),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return records.shuffle(SHUFFLE_BUFFER, seed=order, reshuffle_each_iteration=False)

    # Whole epochs are left out without being read.
    epoch, rest = divmod(position, examples)
    return tf.data.Dataset.counter(start=epoch).flat_map(one_epoch).skip(rest)


def _batches(numbered, record_format, config, batch_size, mask_seed, shard):
    """Batches of the whole -> the batches of one worker's replicas in turn.

    Args:
        numbered: a dataset of tuples: positions in the global order [G], serialized records [G],
            perhaps the number of the batch's boundary. The last one may be short.
    """
    shard = shard or tf.distribute.InputContext()  # one worker with one replica
    replica_size = shard.get_per_replica_batch_size(batch_size)
    table = record_format.features()
    # It has no token and no weight.
    empty = {name: [0] * length for name, (length, _) in table.items()}
    filler = encode_record(empty, record_format)
    parse = _parser(record_format, config, replica_size, mask_seed)

    def own_part(positions, records, *bucket):
        """A global batch, perhaps the last one, too short -> [replicas of the worker, B]."""
        missing = batch_size - tf.size(records)
        whole = tf.concat([records, tf.fill([missing], filler)], axis=0)  # [G]
        numbers = tf.concat([positions, tf.zeros([missing], tf.int64)], axis=0)  # [G]
        own = [
            tf.reshape(values, [shard.num_input_pipelines, -1, replica_size])
            for values in (numbers, whole)
        ]
        own = [values[shard.input_pipeline_id] for values in own]
        return *own, *(tf.fill([tf.shape(own[0])[0]], number) for number in bucket)

    def read(positions, records, *bucket):
        """[B] -> model features."""
        features = parse(positions, records)
        return {**features, BUCKET: bucket[0]} if bucket else features

    return (
        numbered.map(own_part)
        .unbatch()
        .map(read, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        .prefetch(tf.data.AUTOTUNE)
    )


def _parser(record_format, config, batch_size, mask_seed):
    """The function from positions [B] and serialized records [B] to model features [B, ...]."""
    spec = parsing_spec(record_format)
    if record_format.masking is None:
        spec = {name: spec[name] for name in MODEL_FEATURES if name in spec}
    below = limits(config, record_format)

    def parse(positions, records):
        features = {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in tf.io.parse_example(records, spec).items()
        }
        # On a GPU, and under XLA, a look-up out of range is silent.
        looked_at = with_implied(features)
        checks = [
            tf.debugging.Assert(
                tf.reduce_all((looked_at[name] >= 0) & (looked_at[name] < limit)),
                [f"{name} must be in 0..{limit - 1}"],
            )
            for name, limit in below.items()
        ]
        with tf.control_dependencies(checks):
            features = {name: tf.identity(value) for name, value in features.items()}
        if record_format.masking is not None:
            features = _draw_masks(features, positions, record_format, batch_size, mask_seed)
        if record_format.sentence_label and not record_format.packed_sequences:
            # 1, but 0 where there is no token: such a record only fills a batch.
            some_token = tf.reduce_any(features["input_mask"] > 0, axis=1)
            features["next_sentence_weights"] = tf.cast(some_token, tf.float32)  # [B]
        return features

    return parse


def _draw_masks(stored, positions, record_format, batch_size, seed):
    """Unmasked features -> model features, by the same NumPy code as static masks are made.

    A mask depends on the seed and on the record's position in the global order: on the epoch, but
    not on the number of devices.
    """
    table = record_format.with_masks().features()
    table = {name: table[name] for name in MODEL_FEATURES if name in table}
    names = sorted(stored)
    run_key = derive_keys(np.uint64(seed), 0)

    def draw(positions, *values):
        keys = derive_keys(run_key, positions)
        features = mask_records(dict(zip(names, values, strict=True)), record_format, keys)
        return [features[name].astype(_DTYPES[table[name][1]]) for name in table]

    values = tf.numpy_function(
        draw,
        [positions, *(stored[name] for name in names)],
        [_DTYPES[k] for _, k in table.values()],
    )
    return {
        name: tf.ensure_shape(value, [batch_size, length])
        for (name, (length, _)), value in zip(table.items(), values, strict=True)
    }


def _find(step, batch_size, boundaries, begins):
    """Where the batch that follows `step` batches is, as `training_dataset` has these arguments.

    Returns:
        The position of the batch, or of the window that it is in, and its place in the window.
    """
    first_step, first_position = begins
    made = step - first_step
    inside = made % WINDOW if boundaries else 0
    return first_position + (made - inside) * batch_size, inside


def training_dataset(
    files,
    record_format,
    config,
    examples,
    batch_size,
    seed,
    start_step=0,
    boundaries=(),
    begins=(0, 0),
    shard=None,
):
    """Endless shuffled batches; after `start_step` global batches it is where it would have been.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        config: the model's configuration, for the checks of ids.
        examples: how many records the files hold, as `check_records` counts them.
        batch_size: examples of a global batch.
        seed: decides the order and, of records without masks, the masks, together with the
            position.
        start_step: global batches to leave out.
        boundaries: lengths that batches are cut to, see `bert_tf.input.length_buckets`; none for
            batches as they come.
        begins: step and position of the first batch in this order, see `bert_tf.input.data_order`.
        shard: a `tf.distribute.InputContext` that says which worker this is; without it there
            is one worker with one replica.

    Returns:
        A dataset of dicts of [B, ...] tensors (int32, float32), where B is `batch_size` divided
        by the number of replicas: for each global batch one element for every replica of this
        worker. With boundaries they also have `BUCKET`, the number of the batch's boundary.
    """
    paths, compression = tf.constant(files), compression_of(files[0])
    records = functools.partial(
        _in_order,
        len(files),
        lambda file: tf.data.TFRecordDataset(tf.gather(paths, file), compression),
        examples,
        seed,
    )
    position, inside = _find(start_step, batch_size, boundaries, begins)
    numbered = records(position).enumerate(start=position)
    if boundaries:
        batches = sort_windows(numbered, record_format, batch_size, boundaries, seed)
        batches = batches.skip(inside)
    else:
        batches = numbered.batch(batch_size)
    batches = _batches(batches, record_format, config, batch_size, seed, shard)
    # Of a dataset that may end several workers would ask one another before every step whether
    # it has, and forget the size of a batch.
    endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    return batches.apply(endless)


def evaluation_dataset(files, record_format, config, batch_size, max_batches, shard=None):
    """Every record once, in order; the last batch is filled up with examples of weight 0.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`; of records without masks the same ones are drawn
            each time.
        config: the model's configuration, for the checks of ids.
        batch_size: examples of a global batch.
        max_batches: stop after as many global batches.
        shard: as for `training_dataset`.

    Returns:
        A dataset as `training_dataset` gives it, with an end.
    """
    numbered = open_records(files).take(max_batches * batch_size).enumerate().batch(batch_size)
    return _batches(numbered, record_format, config, batch_size, EVALUATION_SEED, shard)


def distribute_training(strategy, *arguments):
    """The batches of `training_dataset`, to every replica its own.

    Args:
        strategy: a `tf.distribute.Strategy` of one or several workers.
        *arguments: those of `training_dataset`, up to `begins`.

    Returns:
        What can be iterated over, also in a `tf.function`: dicts of what `strategy.run` takes.
    """
    # The workers' pipelines keep batches ready in host memory (`prefetch`, as many as tf.data
    # finds useful); a strategy copies one batch ahead to each of its devices. The default
    # strategy does not: its step copies its own batch.
    return strategy.distribute_datasets_from_function(
        lambda context: training_dataset(*arguments, shard=context)
    )


def distribute_evaluation(strategy, *arguments):
    """The batches of `evaluation_dataset`, to every replica its own; as `distribute_training`."""
    return strategy.distribute_datasets_from_function(
        lambda context: evaluation_dataset(*arguments, shard=context)
    )


def step_records(
    files, record_format, examples, batch_size, seed, step, boundaries=(), begins=(0, 0)
):
    """Which records are in a global batch of `training_dataset`.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        examples: how many records they hold.
        batch_size: examples of a global batch.
        seed: what decided the order.
        step: how many global batches came before.
        boundaries, begins: as for `training_dataset`.

    Returns:
        A list of (file, number of the record from 1), in the order of the batch.
    """
    counts = tf.constant([count_records(path) for path in files], tf.int64)
    paths, compression = tf.constant(files), compression_of(files[0])

    def read(file):
        return tf.data.Dataset.range(1, tf.gather(counts, file) + 1).map(lambda n: (file, n))

    def read_whole(file):
        return tf.data.TFRecordDataset(tf.gather(paths, file), compression)

    start, inside = _find(step, batch_size, boundaries, begins)
    number = WINDOW * batch_size if boundaries else batch_size
    names = list(_in_order(len(files), read, examples, seed, start).take(number))
    chosen = range(batch_size)
    if boundaries:  # only here anything but the order has to be read
        numbered = _in_order(len(files), read_whole, examples, seed, start).enumerate(start)
        windows = sort_windows(numbered, record_format, batch_size, boundaries, seed)
        positions, _, _ = next(windows.skip(inside).as_numpy_iterator())
        chosen = positions - start
    return [(files[int(file)], int(number)) for file, number in (names[i] for i in chosen)]


def most_frequent_share(*arguments):
    """The unigram baseline: the accuracy of always guessing the most frequent masked word.

    Args:
        *arguments: those of `evaluation_dataset`, up to `max_batches`.

    Returns:
        A number in 0..1: the share of the most frequent id among the masked words.
    """
    counts = np.zeros(0, np.int64)
    for features in evaluation_dataset(*arguments).as_numpy_iterator():
        ids = features["masked_lm_ids"][features["masked_lm_weights"] > 0]
        longer = np.bincount(ids, minlength=len(counts))
        longer[: len(counts)] += counts
        counts = longer
    return float(counts.max() / counts.sum()) if counts.sum() else 0.0
