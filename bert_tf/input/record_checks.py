"""Checks records before training, and finds the damaged one after it has failed."""

import tensorflow as tf

from bert_common.errors import InputError
from bert_common.progress import with_progress
from create_pretraining_data.records.reader import (
    Corruption,
    compression_of,
    count_records,
    find_corruption,
    open_records,
    parsing_spec,
    read_format,
)

# Records of each file whose ids are checked before training; the rest are checked as they are
# read.
CHECKED_RECORDS = 32


def check_records(files, max_seq_length, max_predictions_per_seq, config):
    """Checks the beginning of every file before anything is spent.

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
    for path in with_progress(files, "checking records", "files"):
        record_format, count = _summarize(path)
        examples += count
        for name, value in wanted.items():
            if getattr(record_format, name) != value:
                raise InputError(
                    f"--{name} must be that of the records. Received: --{name}={value}, "
                    f"{path} has {getattr(record_format, name)}"
                )
        first = first or record_format
        _check_alike(files[0], first, path, record_format)
        masking = record_format.masking
        if masking is not None and masking.vocab_size > config.vocab_size:
            raise InputError(
                "vocab_size of the configuration must be at least that of the records' tokenizer. "
                f"Received: {config.vocab_size}, {masking.vocab_size} for {path}"
            )
        _check_ids(path, open_records(path).take(CHECKED_RECORDS), record_format, config)
    return first, examples


def _check_alike(one_path, one, path, other):
    """Refuses files of two formats: paths and `RecordFormat`s."""
    if other.sentence_label != one.sentence_label:
        raise InputError(
            "all files must have sentence labels, or none. Received: "
            f"{one_path} and {path}, of which one has none"
        )
    if other.packed_sequences != one.packed_sequences:
        raise InputError(
            "all files must hold rows of as many packed sequences. Received: "
            f"{one.packed_sequences} in {one_path}, {other.packed_sequences} in {path} "
            "(0: not packed)"
        )
    if other.masking != one.masking:
        raise InputError(
            "all files must hold their masks, or be masked by the same rules. Received: "
            f"{one.masking} for {one_path}, {other.masking} for {path}"
        )
    if compression_of(path) != compression_of(one_path):
        raise InputError(
            "all files must be compressed, or none. Received: "
            f"{one_path} and {path}, of which one is"
        )


def longest_sequence(files, record_format):
    """The most pieces of a sequence, that is how many positions the records train.

    For ordinary records that is their length, but not for packed rows, each sequence of which
    begins at position 0. Of packed files only the first records are read.

    Args:
        files: paths of TFRecord files.
        record_format: their format.
    """
    if not record_format.packed_sequences:
        return record_format.max_seq_length
    spec = parsing_spec(record_format)
    highest = 0
    for path in files:
        dataset = open_records(path).take(CHECKED_RECORDS)
        parsed = dataset.map(lambda r: with_implied(tf.io.parse_single_example(r, spec)))
        for record in parsed.as_numpy_iterator():
            highest = max(highest, int(record["position_ids"].max()))
    return highest + 1


def _summarize(path):
    """The `RecordFormat` of a file, and how many records it holds.

    Nothing else reads a whole file before training.
    """
    return read_format(path), count_records(path)


def _check_ids(path, dataset, record_format, config):
    """Raises an InputError that names the first record with an id out of range."""
    spec = parsing_spec(record_format)
    parsed = dataset.map(lambda r: with_implied(tf.io.parse_single_example(r, spec)))
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
    "word_starts": "yes or no",
    "segment_lengths": "the sequence length",
}


def with_implied(features):
    """Adds to records without masks the features that masking will derive from `segment_lengths`.

    Args:
        features: of one record or of several, as they are parsed.

    Returns:
        A dict; its "segment_ids" and "position_ids" are vectors of the highest one of each
        sequence.
    """
    if "segment_lengths" not in features:
        return features
    lengths = tf.reshape(features["segment_lengths"], [-1, 2])
    return {
        **features,
        "segment_ids": tf.cast(lengths[:, 1] > 0, lengths.dtype),
        "position_ids": tf.maximum(tf.reduce_sum(lengths, axis=1) - 1, 0),
    }


def limits(config, record_format):
    """The exclusive upper limit of the values of each feature of records `with_implied`."""
    below = {
        "input_ids": config.vocab_size,
        "masked_lm_ids": config.vocab_size,
        "segment_ids": config.type_vocab_size,
        "masked_lm_positions": record_format.max_seq_length,
        "segment_index": record_format.packed_sequences + 1,
        "position_ids": config.max_position_embeddings,
        "sequence_starts": record_format.max_seq_length,
        "next_sentence_labels": 2,
        "word_starts": 2,
        "segment_lengths": record_format.max_seq_length + 1,
    }
    present = set(record_format.features())
    if record_format.masking is not None:
        present |= {"segment_ids", "position_ids"}
    return {name: limit for name, limit in below.items() if name in present}


def explain_failure(files, record_format, config):
    """Finds the file that TensorFlow failed on; reads all of them again.

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
