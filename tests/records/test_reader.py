"""Records are TensorFlow's, byte for byte, and come back as written; a damaged file is named."""

import random
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bert_common.errors import InputError
from create_pretraining_data.instances.features import make_features
from create_pretraining_data.instances.masking import MaskedSequences
from create_pretraining_data.instances.packing import lay_out
from create_pretraining_data.records.encoding import encode_record, encode_records, encode_varints
from create_pretraining_data.records.reader import inspect_record, parsing_spec, read_format
from create_pretraining_data.records.record_format import RecordFormat
from create_pretraining_data.records.tfrecord import frame, split_frames
from tests.support.paths import TEST_DATA
from tests.support.record_files import flip, tf_example, write_records
from tests.support.refusals import refused
from tests.support.sequences import Sequence, sequences_from

DATA = TEST_DATA / "pretraining_data"
FORMATS = [
    RecordFormat(16, 4, sentence_label=label, token_boundary=boundary, packed_sequences=sequences)
    for sequences in (0, 1, 3)
    for label in (True, False)
    for boundary in (True, False)
]


def some_features(record_format, seed=0):
    rng = random.Random(seed)
    return {
        name: [rng.randrange(2) if kind == "float" else rng.randrange(30000) for _ in range(length)]
        for name, (length, kind) in record_format.features().items()
    }


def write(path, record_format, count=1):
    rows = [some_features(record_format, seed) for seed in range(count)]
    write_records(str(path), rows, record_format)
    return str(path)


def read_all(path, record_format):
    spec = parsing_spec(record_format)
    records = tf.data.TFRecordDataset(str(path)).map(lambda r: tf.io.parse_single_example(r, spec))
    return list(records.as_numpy_iterator())


@pytest.mark.parametrize("record_format", FORMATS)
def test_round_trip(tmp_path, record_format):
    path = write(tmp_path / "a.tfrecord", record_format, count=3)
    assert read_format(path) == record_format
    back = read_all(path, record_format)
    assert len(back) == 3
    for seed, record in enumerate(back):
        assert list(record) == sorted(record_format.features())
        for name, values in some_features(record_format, seed).items():
            kind = record_format.features()[name][1]
            assert record[name].dtype == {"int": np.int64, "float": np.float32}[kind]
            np.testing.assert_array_equal(record[name], values)


def test_an_instance_is_padded_to_the_format():
    row = Sequence(
        [1, 10, 11, 12, 2, 20, 21, 2], [0] * 5 + [1] * 3, [(1, 3), (3, 4), (5, 7)], sentence_label=1
    )
    sequences = sequences_from([row], width=10)
    ids, positions, labels = [1, 3, 11, 12, 2, 20, 3, 2, 0, 0], [1, 6, 0], [10, 21, 0]
    masked = MaskedSequences(*map(np.array, ([ids], [positions], [labels], [2])))
    record_format = RecordFormat(10, 3, sentence_label=True, token_boundary=True)
    layout = lay_out(np.arange(1), sequences.lengths)
    features = make_features(sequences, masked, layout, record_format, pad_id=9)
    assert {name: values[0].tolist() for name, values in features.items()} == {
        "input_ids": [1, 3, 11, 12, 2, 20, 3, 2, 9, 9],
        "input_mask": [1] * 8 + [0] * 2,
        "segment_ids": [0] * 5 + [1] * 3 + [0] * 2,
        "masked_lm_positions": [1, 6, 0],
        "masked_lm_ids": [10, 21, 0],
        "masked_lm_weights": [1, 1, 0],
        "next_sentence_labels": [1],
        "token_boundary": [1, 1, 0, 1, 1, 1, 0, 1, 0, 0],
    }
    assert len(encode_records(features, record_format)) == 1


@pytest.mark.parametrize(
    ("name", "token_boundary"),
    [("bert_default_sample.tfrecord", False), ("albert_wp_default_sample.tfrecord", True)],
)
def test_googles_own_records_are_read(name, token_boundary):
    record_format = read_format(str(DATA / name))
    assert record_format == RecordFormat(128, 20, True, token_boundary)
    records = read_all(DATA / name, record_format)
    assert len(records) == {"bert": 161, "albert": 107}[name.split("_")[0]]
    for record in records:
        length = record["input_mask"].sum()
        assert record["input_ids"][length:].tolist() == [0] * (128 - length)
        assert record["masked_lm_positions"].max() < length
        assert record["next_sentence_labels"][0] in (0, 1)
    # The same features of ours are the same bytes apart from their order in the file.
    raw = next(tf.data.TFRecordDataset(str(DATA / name)).as_numpy_iterator())
    ours = encode_record(records[0], record_format)
    assert tf.train.Example.FromString(raw) == tf.train.Example.FromString(ours)


def test_the_same_features_are_the_same_bytes():
    features = some_features(FORMATS[0])
    record = encode_record(features, FORMATS[0])
    assert record == encode_record(dict(reversed(features.items())), FORMATS[0])
    found = inspect_record(record)
    assert found == FORMATS[0].features()
    order = [record.find(name.encode()) for name in sorted(found)]
    assert order == sorted(order)


def test_the_frames_are_those_of_tensorflow(tmp_path):
    records = [b"", b"a", bytes(1000)]
    path = write_raw(tmp_path / "a.tfrecord", *records)
    content = Path(path).read_bytes()
    assert b"".join(map(frame, records)) == content
    assert [content[a + 12 : b - 4] for a, b in split_frames(content)] == records
    for position in (3, 9, 30, len(content) - 1):
        with pytest.raises(ValueError, match="damaged|cut off"):
            split_frames(flip(content, position))
    with pytest.raises(ValueError, match="cut off"):
        split_frames(content[:-1])


def write_raw(path, *records):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


SQUAD = {"unique_ids": [1], "input_ids": [1, 2], "input_mask": [1, 1], "segment_ids": [0, 0]}
WHOLE = {
    "input_ids": [1, 2], "input_mask": [1, 1], "segment_ids": [0, 0], "masked_lm_positions": [1],
    "masked_lm_ids": [2], "masked_lm_weights": [1.0],
}  # fmt: skip
PACKED = {**WHOLE, "segment_index": [1, 2], "position_ids": [0, 0], "sequence_starts": [0, 1]}


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (SQUAD, "without masked_lm_positions, masked_lm_ids, masked_lm_weights .it holds"),
        ({**WHOLE, "segment_ids": [0]}, "segment_ids must hold 2 values of kind int. Received: 1"),
        ({**WHOLE, "masked_lm_weights": [1]}, "masked_lm_weights must hold 1 .*kind float.*: 1 of"),
        ({**WHOLE, "next_sentence_labels": [1, 0]}, "next_sentence_labels must hold 1 .*: 2 of"),
        ({**WHOLE, "position_ids": [0, 0]}, "without segment_index, sequence_starts .it holds"),
        ({**WHOLE, "sequence_starts": [0]}, "without segment_index, position_ids .it holds"),
        ({**PACKED, "position_ids": [0]}, "position_ids must hold 2 values of kind int.*: 1 of"),
        ({**PACKED, "next_sentence_labels": [1, 0]}, "without next_sentence_weights .it holds"),
        (
            {**PACKED, "next_sentence_labels": [1], "next_sentence_weights": [1.0, 1.0]},
            "next_sentence_labels must hold 2 .*: 1 of",
        ),
        (
            {**PACKED, "next_sentence_labels": [1, 0], "next_sentence_weights": [1, 1]},
            "next_sentence_weights must hold 2 .*kind float.*kind int",
        ),
    ],
)
def test_other_records_are_refused(tmp_path, features, message):
    path = write_raw(tmp_path / "other.tfrecord", tf_example(features))
    with pytest.raises(InputError, match=f"other.tfrecord.*{message}"):
        read_format(path)


SAMPLE = (DATA / "bert_default_sample.tfrecord").read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must hold records. Received: no record"),
        (None, "must exist"),
        (b"Not a record file, only text of some length.\n" * 9, "must be a complete TFRecord file"),
        (frame(b"\xff\xff\xff"), "not a tf.train.Example"),
        (SAMPLE[:100], "must be a complete TFRecord file"),
    ],
)  # fmt: skip
def test_unreadable_files_are_refused_by_name(tmp_path, content, message):
    path = tmp_path / "a.tfrecord"
    if content is not None:
        path.write_bytes(content)
    with refused(path, message):
        read_format(str(path))


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
    """The row's record."""
    types = {"int": np.int64, "float": np.float32}
    kinds = {name: types[kind] for name, (_, kind) in record_format.features().items()}
    return tf_example({name: features[name][row].astype(kinds[name]).tolist() for name in kinds})


@pytest.mark.parametrize("record_format", [*FORMATS, RecordFormat(512, 77, True, False)])
def test_bytes_are_tensorflows(record_format):
    features = random_features(record_format, 20)
    features["input_mask"] = features["input_mask"] % 2 == 1  # flags are integers too
    features["input_ids"] = features["input_ids"].astype(np.int32)
    expected = [by_tensorflow(features, row, record_format) for row in range(20)]
    assert encode_records(features, record_format) == expected


def test_varints_of_one_byte_and_more():
    for values in ([[1, 2], [3, 127]], [[1, 128], [300, 0]], [[0, 2**31 - 1], [5, 5]]):
        encoded, sizes = encode_varints(np.array(values))
        by_row = [
            b"".join(tf.train.Int64List(value=[v]).SerializeToString()[2:] for v in row)
            for row in values
        ]
        assert encoded == b"".join(by_row)
        assert sizes.tolist() == list(map(len, by_row))


@pytest.mark.parametrize(
    "name, value", [("input_mask", None), ("other", [[1]]), ("input_ids", [[1]])]
)
def test_other_features_are_refused(name, value):
    """Missing, unknown, too short."""
    features = {**random_features(FORMATS[0], 1), name: np.array(value)}
    if value is None:
        del features[name]
    with pytest.raises(ValueError, match="features must be as in"):
        encode_records(features, FORMATS[0])
