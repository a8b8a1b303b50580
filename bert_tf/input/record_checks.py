"""Finds records on which a model cannot be trained."""

from collections.abc import Iterable, Mapping, Sequence

import tensorflow as tf

from bert_common.errors import InputError
from bert_common.progress import with_progress
from bert_tf.config import EncoderConfig
from create_pretraining_data.records.metadata import sidecar_path
from create_pretraining_data.records.reader import (
    compression_of,
    count_records,
    open_records,
    parsing_spec,
    read_format,
    scan_records,
)
from create_pretraining_data.records.record_format import RecordFormat

# The number of records per file whose ids are checked before training; the others are checked when
# they are read.
CHECKED_RECORDS = 32


def check_records(
    files: Sequence[str], max_seq_length: int, max_predictions_per_seq: int, config: EncoderConfig
) -> tuple[RecordFormat, int]:
    """Checks the beginning of every file before the model is built.

    Raises an InputError that names a file which is empty, damaged, not of the shape that the flags
    say, different from the other files, or has ids that the model lacks.

    Returns:
        The files' common `RecordFormat`, and their number of examples.
    """
    names = ("max_seq_length", "max_predictions_per_seq")
    wanted = dict(zip(names, (max_seq_length, max_predictions_per_seq), strict=True))
    first: RecordFormat | None = None
    examples = 0
    for path in with_progress(files, "checking records", "files"):
        record_format = read_format(path)
        examples += count_records(path)
        for name, value in wanted.items() if first is None else ():
            if getattr(record_format, name) != value:
                raise InputError(
                    f"--{name} must have the value of the records. Received: --{name}={value}, "
                    f"{path} has {getattr(record_format, name)}"
                )
        first = first or record_format
        _check_alike(files[0], first, path, record_format)
        masking = record_format.masking
        if masking is not None and masking.vocab_size > config.vocab_size:
            raise InputError(
                "vocab_size of the configuration must be at least the size of the records' "
                f"vocabulary. Received: {config.vocab_size}, {masking.vocab_size} for {path}"
            )
        _check_ids(path, open_records(path).take(CHECKED_RECORDS), record_format, config)
    assert first is not None  # there is at least one file
    return first, examples


def _check_alike(one_path, one, path, other):
    """Raises an InputError if two files have different `RecordFormat`s."""
    for name in ("max_seq_length", "max_predictions_per_seq"):
        if getattr(other, name) != getattr(one, name):
            raise InputError(
                f"all files must have the same {name}. Received: {getattr(one, name)} in "
                f"{one_path}, {getattr(other, name)} in {path}"
            )
    if other.sentence_label != one.sentence_label:
        raise InputError(
            "all files must have sentence labels, or none. Received: "
            f"{one_path} and {path}; only one of them has labels"
        )
    if other.packed_sequences != one.packed_sequences:
        raise InputError(
            "all files must be packed with the same number of sequences per row. Received: "
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
            f"{one_path} and {path}; only one of them is compressed"
        )


def longest_sequence(files: Iterable[str], record_format: RecordFormat) -> int:
    """Returns the maximum number of tokens in a sequence, which is how many positions are trained.

    For ordinary records it is their length. In packed rows, each sequence begins at position 0;
    only the first records of packed files are read.
    """
    if not record_format.packed_sequences:
        return record_format.max_seq_length
    last = 0
    for path in files:
        parsed = _parse(open_records(path).take(CHECKED_RECORDS), record_format)
        for record in parsed.as_numpy_iterator():
            last = max(last, int(record["position_ids"].max()))
    return last + 1


def _parse(records, record_format):
    spec = parsing_spec(record_format)
    return records.map(lambda r: add_derived_features(tf.io.parse_single_example(r, spec)))


def _check_ids(path, records, record_format, config):
    """Raises an InputError for the first record that is damaged or has ids out of range."""
    number = 0
    try:
        for record in _parse(records, record_format).as_numpy_iterator():
            number += 1
            for name, (limit, reason) in feature_limits(config, record_format).items():
                if not 0 <= record[name].min() <= record[name].max() < limit:
                    bad = record[name].max() if record[name].max() >= limit else record[name].min()
                    raise InputError(
                        f"{path}, record {number}: {name} must be in 0..{limit - 1} ({reason}). "
                        f"Received: {bad}"
                    )
    except tf.errors.DataLossError:
        raise InputError(
            f"{path} must be a complete TFRecord file. Received: a truncated or corrupted record "
            f"after {number} good ones"
        ) from None
    except tf.errors.InvalidArgumentError as error:
        raise InputError(
            f"{path}, record {number + 1} must be like the first. Received: {error.message}"
        ) from None


def add_derived_features(features: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
    """Adds the features that masking derives from lengths to parsed records without masks.

    The added "segment_ids" and "position_ids" are vectors of each sequence's highest one.
    """
    if "segment_lengths" not in features:
        return features
    lengths = tf.reshape(features["segment_lengths"], [-1, 2])
    return {
        **features,
        "segment_ids": tf.cast(lengths[:, 1] > 0, lengths.dtype),
        "position_ids": tf.maximum(tf.reduce_sum(lengths, axis=1) - 1, 0),
    }


def feature_limits(
    config: EncoderConfig, record_format: RecordFormat
) -> dict[str, tuple[int, str]]:
    """Returns each feature's exclusive limit and its origin, after `add_derived_features`."""
    length = record_format.max_seq_length
    table = {
        "input_ids": (config.vocab_size, "vocab_size of the configuration file"),
        "masked_lm_ids": (config.vocab_size, "vocab_size of the configuration file"),
        "segment_ids": (config.type_vocab_size, "type_vocab_size of the model, or of its teacher"),
        "masked_lm_positions": (length, "the sequence length"),
        "segment_index": (record_format.packed_sequences + 1, "the sequences of a packed row"),
        "position_ids": (
            config.max_position_embeddings,
            "max_position_embeddings of the model, or of its teacher",
        ),
        "sequence_starts": (length, "the sequence length"),
        "next_sentence_labels": (2, "two classes"),
        "word_starts": (2, "yes or no"),
        "segment_lengths": (length + 1, "the sequence length"),
    }  # fmt: skip
    present = set(record_format.features())
    if record_format.masking is not None:
        present |= {"segment_ids", "position_ids"}
    return {name: limit for name, limit in table.items() if name in present}


def explain_failure(
    files: Sequence[str], record_format: RecordFormat, config: EncoderConfig
) -> InputError | None:
    """Rereads all files to find the record on which TensorFlow failed; None if all are intact."""
    for path in files:
        try:
            expected, found = count_records(path), scan_records(path)
            if expected != found:
                raise InputError(
                    f"{sidecar_path(path)} must be unchanged. Received: {expected} records in "
                    f"{path}, which has {found}"
                )
            _check_ids(path, open_records(path), record_format, config)
        except InputError as error:
            return error
    return None
