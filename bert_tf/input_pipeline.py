"""Feeds training records to the devices, in an order that only seed and position decide.

There is one global order of records, cut into global batches. A global batch is cut into equal
consecutive parts, one for every replica: the first worker's replicas have the first ones. Every
worker reads all records, because their order is shuffled, but parses its own alone.

Shapes: B examples of a replica's batch, T tokens, P predictions, S sequences of a packed row.
"""

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from create_pretraining_data.encoding import encode_record
from create_pretraining_data.record_format import RecordFormat
from create_pretraining_data.records import (
    Corruption,
    compression_of,
    count_records,
    find_corruption,
    open_records,
    parsing_spec,
    read_format,
)
from tokenization.errors import InputError

# Records held back for shuffling, beside the shuffled order of the files: at 128 tokens a
# record about 50 MB. (google-research/bert holds 100, which leaves neighbours together.)
SHUFFLE_BUFFER = 20_000

# Files read in turn, so that a batch mixes them.
CYCLE_LENGTH = 16

# Records of each file whose ids are looked at before training; the rest are checked as they
# are read.
CHECKED_RECORDS = 32

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


def check_records(files, max_seq_length, max_predictions_per_seq, config):
    """Looks at the beginning of every file before anything is spent.

    Args:
        files: paths of TFRecord files.
        max_seq_length: what the records must have, as the flags say.
        max_predictions_per_seq: likewise.
        config: the model's configuration.

    Returns:
        The files' common `RecordFormat`, and how many examples they hold.

    Raises:
        InputError: a file that is empty, damaged, of another shape, unlike the others, or
            with ids that the model does not have; the message names the file.
    """
    wanted = {
        "max_seq_length": max_seq_length,
        "max_predictions_per_seq": max_predictions_per_seq,
    }
    first, examples = None, 0
    for path in tqdm(files, desc="checking records", unit="file", leave=False, delay=1):
        found, count = _summarize(path)
        examples += count
        for name, value in wanted.items():
            if getattr(found, name) != value:
                raise InputError(
                    f"--{name} must be that of the records. Received: --{name}={value}, "
                    f"{path} has {getattr(found, name)}"
                )
        first = first or found
        if found.sentence_label != first.sentence_label:
            raise InputError(
                "all files must have sentence labels, or none. Received: "
                f"{files[0]} and {path}, of which one has none"
            )
        if found.packed_sequences != first.packed_sequences:
            raise InputError(
                "all files must hold rows of as many packed sequences. Received: "
                f"{first.packed_sequences} in {files[0]}, {found.packed_sequences} in {path} "
                "(0: not packed)"
            )
        if compression_of(path) != compression_of(files[0]):
            raise InputError(
                "all files must be compressed, or none. Received: "
                f"{files[0]} and {path}, of which one is"
            )
        dataset = open_records(path).take(CHECKED_RECORDS)
        _check_ids(path, dataset, found, config)
    return first, examples


def _summarize(path):
    """All that must be known of a file beforehand: its `RecordFormat`, how many records it holds.

    Nothing else looks at a whole file before training, so that a summary written beside the
    records could take its place.
    """
    return read_format(path), count_records(path)


def _check_ids(path, dataset, record_format, config):
    """Raises an InputError that names the first record with an id out of range."""
    parsed = dataset.map(lambda r: tf.io.parse_single_example(r, parsing_spec(record_format)))
    for number, record in enumerate(_whole_records(path, parsed), start=1):
        for name, limit in limits(config, record_format).items():
            if not 0 <= record[name].min() <= record[name].max() < limit:
                bad = record[name].max() if record[name].max() >= limit else record[name].min()
                raise InputError(
                    f"{path}, record {number}: {name} must be in 0..{limit - 1} "
                    f"({_REASONS[name]}). Received: {bad}"
                )


def _whole_records(path, parsed):
    """The parsed records of one file; a damaged one is an InputError that names the file."""
    records, number = parsed.as_numpy_iterator(), 0
    while True:
        try:
            yield next(records)
        except StopIteration:
            return
        except tf.errors.DataLossError:
            raise InputError(_describe(Corruption(path, number))) from None
        except tf.errors.InvalidArgumentError as error:
            raise InputError(
                f"{path}, record {number + 1} must be like the first. Received: {error.message}"
            ) from None
        number += 1


_REASONS = {
    "input_ids": "vocab_size of the configuration file",
    "masked_lm_ids": "vocab_size of the configuration file",
    "segment_ids": "type_vocab_size of the configuration file",
    "masked_lm_positions": "the sequence length",
    "segment_index": "the sequences of a packed row",
    "position_ids": "max_position_embeddings of the configuration file",
    "sequence_starts": "the sequence length",
    "next_sentence_labels": "two classes",
}


def limits(config, record_format):
    """What the values of each feature of such records must be below."""
    below = {
        "input_ids": config.vocab_size,
        "masked_lm_ids": config.vocab_size,
        "segment_ids": config.type_vocab_size,
        "masked_lm_positions": record_format.max_seq_length,
        "segment_index": record_format.packed_sequences + 1,
        "position_ids": config.max_position_embeddings,
        "sequence_starts": record_format.max_seq_length,
        "next_sentence_labels": 2,
    }
    present = record_format.features()
    return {name: limit for name, limit in below.items() if name in present}


def explain_failure(files, record_format, config):
    """Says which file TensorFlow stumbled over; reads all of them again.

    Args:
        files: the files that were being read when `tf.errors.DataLossError` or
            `tf.errors.InvalidArgumentError` was raised.
        record_format: their format.
        config: the model's configuration.

    Returns:
        An InputError that names file and record, or None if all files are whole.
    """
    corruption = find_corruption(files)
    if corruption is not None:
        return InputError(_describe(corruption))
    for path in files:
        try:
            _check_ids(path, open_records(path), record_format, config)
        except InputError as error:
            return error
    return None


def _describe(corruption: Corruption):
    return (
        f"{corruption.file} must be a whole TFRecord file. Received: a truncated or corrupted "
        f"record after {corruption.good_records} good ones"
    )


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


def _batches(serialized, record_format: RecordFormat, config, batch_size, shard):
    """Serialized records in the global order -> the batches of one worker's replicas in turn."""
    shard = shard or tf.distribute.InputContext()  # one worker with one replica
    replica_size = shard.get_per_replica_batch_size(batch_size)
    table = record_format.features()
    # It has no token and no weight.
    empty = {name: [0] * length for name, (length, _) in table.items()}
    filler = encode_record(empty, record_format)

    def own_part(records):
        """A global batch, perhaps the last one, too short -> [replicas of the worker, B]."""
        missing = batch_size - tf.size(records)
        whole = tf.concat([records, tf.fill([missing], filler)], axis=0)  # [batch_size]
        parts = tf.reshape(whole, [shard.num_input_pipelines, -1, replica_size])
        return parts[shard.input_pipeline_id]

    return (
        serialized.batch(batch_size)
        .map(own_part)
        .unbatch()
        .map(
            _parser(record_format, config), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        .prefetch(tf.data.AUTOTUNE)
    )


def _parser(record_format, config):
    """The function from serialized records [B] to model features [B, ...], checked."""
    spec = {
        name: feature
        for name, feature in parsing_spec(record_format).items()
        if name in MODEL_FEATURES
    }

    def parse(records):
        features = {
            name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
            for name, value in tf.io.parse_example(records, spec).items()
        }
        # On a GPU, and under XLA, a look-up out of range is silent.
        checks = [
            tf.debugging.Assert(
                tf.reduce_all((features[name] >= 0) & (features[name] < limit)),
                [f"{name} must be in 0..{limit - 1}"],
            )
            for name, limit in limits(config, record_format).items()
        ]
        with tf.control_dependencies(checks):
            features = {name: tf.identity(value) for name, value in features.items()}
        if record_format.sentence_label and not record_format.packed_sequences:
            # 1, but 0 where there is no token: such a record only fills a batch.
            some_token = tf.reduce_any(features["input_mask"] > 0, axis=1)
            features["next_sentence_weights"] = tf.cast(some_token, tf.float32)  # [B]
        return features

    return parse


def training_dataset(
    files, record_format, config, examples, batch_size, seed, start_step=0, shard=None
):
    """Endless shuffled batches; after `start_step` global batches it is where it would have been.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        config: the model's configuration, for the checks of ids.
        examples: how many records the files hold, as `check_records` counts them.
        batch_size: examples of a global batch.
        seed: decides the order, together with the position.
        start_step: global batches to leave out.
        shard: a `tf.distribute.InputContext` that says which worker this is; without it there
            is one worker with one replica.

    Returns:
        A dataset of dicts of [B, ...] tensors (int32, float32), where B is `batch_size` divided
        by the number of replicas: for each global batch one element for every replica of this
        worker.
    """
    paths, compression = tf.constant(files), compression_of(files[0])
    records = _in_order(
        len(files),
        lambda file: tf.data.TFRecordDataset(tf.gather(paths, file), compression),
        examples,
        seed,
        start_step * batch_size,
    )
    batches = _batches(records, record_format, config, batch_size, shard)
    # Of a dataset that may end several workers would ask one another before every step whether
    # it has, and forget the size of a batch.
    endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
    return batches.apply(endless)


def evaluation_dataset(files, record_format, config, batch_size, max_batches, shard=None):
    """Every record once, in order; the last batch is filled up with examples of weight 0.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        config: the model's configuration, for the checks of ids.
        batch_size: examples of a global batch.
        max_batches: stop after as many global batches.
        shard: as for `training_dataset`.

    Returns:
        A dataset as `training_dataset` gives it, with an end.
    """
    records = open_records(files).take(max_batches * batch_size)
    return _batches(records, record_format, config, batch_size, shard)


def distribute_training(
    strategy, files, record_format, config, examples, batch_size, seed, start_step=0
):
    """The batches of `training_dataset`, to every replica its own.

    Args:
        strategy: a `tf.distribute.Strategy` of one or several workers.
        files, record_format, config, examples, batch_size, seed, start_step: as for
            `training_dataset`.

    Returns:
        What can be iterated over, also in a `tf.function`: dicts of what `strategy.run` takes.
    """
    # The workers' pipelines keep batches ready in host memory (`prefetch`, as many as tf.data
    # finds useful); a strategy copies one batch ahead to each of its devices. The default
    # strategy does not: its step copies its own batch.
    return strategy.distribute_datasets_from_function(
        lambda context: training_dataset(
            files, record_format, config, examples, batch_size, seed, start_step, context
        )
    )


def distribute_evaluation(strategy, files, record_format, config, batch_size, max_batches):
    """The batches of `evaluation_dataset`, to every replica its own; as `distribute_training`."""
    return strategy.distribute_datasets_from_function(
        lambda context: evaluation_dataset(
            files, record_format, config, batch_size, max_batches, context
        )
    )


def step_records(files, examples, batch_size, seed, step):
    """Which records are in a global batch of `training_dataset`, without reading any.

    Args:
        files: paths of TFRecord files.
        examples: how many records they hold.
        batch_size: examples of a global batch.
        seed: what decided the order.
        step: how many global batches came before.

    Returns:
        A list of (file, number of the record from 1), in the order of the batch.
    """
    counts = tf.constant([count_records(path) for path in files], tf.int64)

    def read(file):
        numbers = tf.data.Dataset.range(1, tf.gather(counts, file) + 1)
        return numbers.map(lambda number: (file, number))

    batch = _in_order(len(files), read, examples, seed, step * batch_size).take(batch_size)
    return [(files[file], int(number)) for file, number in batch.as_numpy_iterator()]


def most_frequent_share(files, record_format, max_records=100_000):
    """The unigram baseline: the accuracy of always guessing the most frequent masked word.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        max_records: how many records to look at, in order.

    Returns:
        A number in 0..1: the share of the most frequent id among the masked words.
    """
    spec = parsing_spec(record_format)
    counts = np.zeros(0, np.int64)
    for features in open_records(files).take(max_records).batch(1024):
        parsed = tf.io.parse_example(
            features, {name: spec[name] for name in ("masked_lm_ids", "masked_lm_weights")}
        )
        ids = parsed["masked_lm_ids"].numpy()[parsed["masked_lm_weights"].numpy() > 0]
        longer = np.bincount(ids, minlength=len(counts))
        longer[: len(counts)] += counts
        counts = longer
    return float(counts.max() / counts.sum()) if counts.sum() else 0.0
