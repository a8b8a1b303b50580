"""Records that are serialized without TensorFlow equal TensorFlow's, byte for byte."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from create_pretraining_data.records.encoding import encode_records, encode_varints
from create_pretraining_data.records.reader import RecordFormat
from tests.support.record_files import tf_example

FORMAT = RecordFormat(16, 4, sentence_label=True, token_boundary=True)
FORMATS = (
    FORMAT,
    dataclasses.replace(FORMAT, sentence_label=False, token_boundary=False),
    dataclasses.replace(FORMAT, packed_sequences=3),
    RecordFormat(512, 77, sentence_label=True, token_boundary=False),
)
# Where a number needs another byte.
BORDERS = [b + d for b in (1 << 7, 1 << 14, 1 << 21, 1 << 28) for d in (-1, 0, 1)]
NUMBERS = [0, 1, *BORDERS, 2**31 - 1]


def random_features(record_format, records, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: rng.choice(NUMBERS, (records, length))
        if kind == "int"
        else rng.uniform(-2, 2, (records, length)).astype(np.float32)
        for name, (length, kind) in record_format.features().items()
    }


def by_tensorflow(features, row, record_format):
    """The row's record; flags are integers too."""
    types = {"int": np.int64, "float": np.float32}
    kinds = {name: types[kind] for name, (_, kind) in record_format.features().items()}
    return tf_example({name: features[name][row].astype(kinds[name]).tolist() for name in kinds})


@pytest.mark.parametrize("record_format", FORMATS)
def test_bytes_are_tensorflows(record_format):
    features = random_features(record_format, 20)
    expected = [by_tensorflow(features, row, record_format) for row in range(20)]
    assert encode_records(features, record_format) == expected


def test_flags_and_small_types():
    features = random_features(FORMAT, 3)
    features["input_mask"] = features["input_mask"] % 2 == 1
    features["input_ids"] = features["input_ids"].astype(np.int32)
    expected = [by_tensorflow(features, row, FORMAT) for row in range(3)]
    assert encode_records(features, FORMAT) == expected


def test_varints_of_one_byte_and_more():
    for values in ([[1, 2], [3, 127]], [[1, 128], [300, 0]], [[0, 2**31 - 1], [5, 5]]):
        encoded, sizes = encode_varints(np.array(values))
        by_row = [
            b"".join(tf.train.Int64List(value=[v]).SerializeToString()[2:] for v in row)
            for row in values
        ]
        assert encoded == b"".join(by_row)
        assert sizes.tolist() == list(map(len, by_row))


@pytest.mark.parametrize("change", ["missing", "unknown", "short"])
def test_other_features_are_refused(change):
    features = random_features(FORMAT, 2)
    if change == "missing":
        del features["input_mask"]
    elif change == "unknown":
        features["other"] = features["input_ids"]
    else:
        features["input_ids"] = features["input_ids"][:, 1:]
    with pytest.raises(ValueError, match="features must be as in"):
        encode_records(features, FORMAT)
