"""Feeds training records to the devices, in an order that only seed and position decide."""

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from create_pretraining_data.records import (
    Corruption,
    RecordFormat,
    count_records,
    find_corruption,
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
    "next_sentence_labels",
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
        found = read_format(path)
        examples += count_records(path)
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
        dataset = tf.data.TFRecordDataset(path).take(CHECKED_RECORDS)
        _check_ids(path, dataset, found, config)
    return first, examples


def _check_ids(path, dataset, record_format, config):
    """Raises an InputError that names the first record with an id out of range."""
    parsed = dataset.map(lambda r: tf.io.parse_single_example(r, record_format.parsing_spec()))
    for number, record in enumerate(_whole_records(path, parsed), start=1):
        for name, limit in limits(config, record_format).items():
            if name in record and not 0 <= record[name].min() <= record[name].max() < limit:
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
    "next_sentence_labels": "two classes",
}


def limits(config, record_format):
    """What the values of each feature must be below."""
    return {
        "input_ids": config.vocab_size,
        "masked_lm_ids": config.vocab_size,
        "segment_ids": config.type_vocab_size,
        "masked_lm_positions": record_format.max_seq_length,
        "next_sentence_labels": 2,
    }


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
            _check_ids(path, tf.data.TFRecordDataset(path), record_format, config)
        except InputError as error:
            return error
    return None


def _describe(corruption: Corruption):
    return (
        f"{corruption.file} must be a whole TFRecord file. Received: a truncated or corrupted "
        f"record after {corruption.good_records} good ones"
    )


def _batches(serialized, batch_size, record_format: RecordFormat, config, drop_remainder):
    """Serialized records -> batches of model features, checked."""
    spec = {
        name: feature
        for name, feature in record_format.parsing_spec().items()
        if name in MODEL_FEATURES
    }
    bounds = {name: limit for name, limit in limits(config, record_format).items() if name in spec}

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
            for name, limit in bounds.items()
        ]
        with tf.control_dependencies(checks):
            features = {name: tf.identity(value) for name, value in features.items()}
        if record_format.sentence_label:
            features["next_sentence_weights"] = tf.ones(tf.shape(records), tf.float32)
        return features

    return serialized.batch(batch_size, drop_remainder=drop_remainder).map(
        parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
    )


def training_dataset(files, record_format, config, examples, batch_size, seed, start_step=0):
    """Endless shuffled batches; after `start_step` batches it is where it would have been.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        config: the model's configuration, for the checks of ids.
        examples: how many records the files hold, as `check_records` counts them.
        batch_size: examples of a global batch.
        seed: decides the order, together with the position.
        start_step: batches to leave out.

    Returns:
        A dataset of dicts of [batch_size, ...] tensors (int32, float32).
    """

    def one_epoch(epoch):
        order = tf.cast(seed, tf.int64) * 1_000_003 + epoch  # another seed, another series
        paths = tf.data.Dataset.from_tensor_slices(files).shuffle(
            len(files), seed=order, reshuffle_each_iteration=False
        )
        records = paths.interleave(
            tf.data.TFRecordDataset,
            cycle_length=min(CYCLE_LENGTH, len(files)),
            num_parallel_calls=tf.data.AUTOTUNE,
            deterministic=True,
        )
        return records.shuffle(SHUFFLE_BUFFER, seed=order, reshuffle_each_iteration=False)

    # Whole epochs are left out without being read.
    epoch, rest = divmod(start_step * batch_size, examples)
    records = tf.data.Dataset.counter(start=epoch).flat_map(one_epoch).skip(rest)
    batches = _batches(records, batch_size, record_format, config, drop_remainder=True)
    return batches.prefetch(tf.data.AUTOTUNE).with_options(_options())


def evaluation_dataset(files, record_format, config, batch_size, max_batches):
    """Every record once, in order; the last batch is filled up with examples of weight 0.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        config: the model's configuration, for the checks of ids.
        batch_size: examples of a global batch.
        max_batches: stop after as many.

    Returns:
        A dataset of dicts of [batch_size, ...] tensors (int32, float32).
    """

    def fill(features):
        missing = batch_size - tf.shape(features["input_ids"])[0]
        filled = {}
        for name, value in features.items():
            paddings = [[0, missing]] + [[0, 0]] * (value.shape.rank - 1)
            filled[name] = tf.ensure_shape(tf.pad(value, paddings), [batch_size, *value.shape[1:]])
        return filled

    batches = _batches(
        tf.data.TFRecordDataset(files), batch_size, record_format, config, drop_remainder=False
    )
    return batches.take(max_batches).map(fill).prefetch(2).with_options(_options())


def _options():
    """One global order of examples: a strategy slices each global batch, not the files."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return options


def most_frequent_share(files, record_format, max_records=100_000):
    """The unigram baseline: the accuracy of always guessing the most frequent masked word.

    Args:
        files: paths of TFRecord files.
        record_format: their `RecordFormat`.
        max_records: how many records to look at, in order.

    Returns:
        A number in 0..1: the share of the most frequent id among the masked words.
    """
    spec = record_format.parsing_spec()
    counts = np.zeros(0, np.int64)
    for features in tf.data.TFRecordDataset(files).take(max_records).batch(1024):
        parsed = tf.io.parse_example(
            features, {name: spec[name] for name in ("masked_lm_ids", "masked_lm_weights")}
        )
        ids = parsed["masked_lm_ids"].numpy()[parsed["masked_lm_weights"].numpy() > 0]
        longer = np.bincount(ids, minlength=len(counts))
        longer[: len(counts)] += counts
        counts = longer
    return float(counts.max() / counts.sum()) if counts.sum() else 0.0
