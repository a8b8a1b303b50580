"""Small record files with random contents, and the batches that workers read of them."""

import dataclasses
import json
import os

import numpy as np
import pytest
import tensorflow as tf

from create_pretraining_data.records.encoding import encode_record
from create_pretraining_data.records.metadata import KIND, sidecar_path
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat
from create_pretraining_data.records.tfrecord import frame
from tests.support.crosses import slow

FORMAT = RecordFormat(
    max_seq_length=16, max_predictions_per_seq=4, sentence_label=True, token_boundary=False
)
PACKED = dataclasses.replace(FORMAT, packed_sequences=3)
RULES = MaskingRules(
    masked_lm_prob=0.25, max_predictions_per_seq=4, do_whole_word_mask=True, ngram=2,
    favor_shorter_ngram=True, do_permutation=False, mask_id=4, vocab_size=60,
)  # fmt: skip
DYNAMIC = dataclasses.replace(FORMAT, masking=RULES)
PACKED_DYNAMIC = dataclasses.replace(
    PACKED,
    max_seq_length=32,
    max_predictions_per_seq=8,
    masking=dataclasses.replace(RULES, max_predictions_per_seq=8),
)
DYNAMIC_FORMATS = pytest.mark.parametrize(
    "record_format", (DYNAMIC, PACKED_DYNAMIC), ids=("ordinary", "packed")
)


def write_records(path, rows, record_format):
    """Writes one file of records with these features."""
    with open(path, "wb") as file:
        file.writelines(frame(encode_record(row, record_format)) for row in rows)


def features(rng, number, record_format=FORMAT, vocab_size=60):
    """Features of one record; its first id is its number, so that records differ."""
    if record_format.masking is not None:
        return dynamic_features(rng, number, record_format, vocab_size)
    if record_format.packed_sequences:
        return packed_features(rng, number, record_format, vocab_size)
    length, places = record_format.max_seq_length, record_format.max_predictions_per_seq
    row = {
        "input_ids": [number % vocab_size, *rng.integers(1, vocab_size, length - 1).tolist()],
        "input_mask": [1] * length,
        "segment_ids": [0] * (length // 2) + [1] * (length - length // 2),
        "masked_lm_positions": rng.integers(1, length, places).tolist(),
        "masked_lm_ids": rng.integers(1, vocab_size, places).tolist(),
        "masked_lm_weights": [1.0] * (places - 1) + [0.0],
    }
    if record_format.sentence_label:
        row["next_sentence_labels"] = [number % 2]
    return row


def padded(values, size):
    values = [int(value) for value in values]
    return values + [0] * (size - len(values))


def dynamic_features(rng, number, record_format=DYNAMIC, vocab_size=60):
    """As `features`, without masks; a word begins at every second piece."""
    length, most = record_format.max_seq_length, record_format.packed_sequences or 1
    count = int(rng.integers(1, most + 1))
    lengths = rng.integers(4, length // most + 1, count)
    used = int(lengths.sum())
    halves = [(n // 2, n - n // 2) for n in lengths]
    ids = [number % vocab_size, *rng.integers(5, vocab_size, used - 1)]
    row = {
        "input_ids": padded(ids, length),
        "word_starts": padded([p % 2 for p in range(used)], length),
        "segment_lengths": padded(np.concatenate(halves), 2 * most),
    }
    if record_format.sentence_label:
        row["next_sentence_labels"] = padded(rng.integers(0, 2, count), most)
    return row


def packed_features(rng, number, record_format=PACKED, vocab_size=60):
    """As `features`, of a row that holds as many sequences as there are places, or fewer."""
    length, places = record_format.max_seq_length, record_format.max_predictions_per_seq
    most = record_format.packed_sequences
    count = int(rng.integers(1, most + 1))
    lengths = rng.integers(2, length // most + 1, count)
    used = int(lengths.sum())
    halves = [np.arange(n) >= n // 2 for n in lengths]

    row = {
        "input_ids": padded([number % vocab_size, *rng.integers(1, vocab_size, used - 1)], length),
        "input_mask": padded([1] * used, length),
        "segment_ids": padded(np.concatenate(halves), length),
        "masked_lm_positions": rng.integers(1, used, places).tolist(),
        "masked_lm_ids": rng.integers(1, vocab_size, places).tolist(),
        "masked_lm_weights": [1.0] * (places - 1) + [0.0],
        "segment_index": padded(np.repeat(np.arange(1, count + 1), lengths), length),
        "position_ids": padded(np.concatenate([np.arange(n) for n in lengths]), length),
        "sequence_starts": padded(np.cumsum(lengths) - lengths, most),
    }
    if record_format.sentence_label:
        row["next_sentence_labels"] = padded(rng.integers(0, 2, count), most)
        row["next_sentence_weights"] = [1.0] * count + [0.0] * (most - count)
    return row


def make_files(folder, counts, record_format=FORMAT, seed=0, change=None):
    """Writes files with `counts` records; `change(number, row)` may alter a row."""
    rng = np.random.default_rng(seed)
    paths, number = [], 0
    for i, count in enumerate(counts):
        rows = []
        for _ in range(count):
            row = features(rng, number, record_format)
            if change is not None:
                change(number, row)
            rows.append(row)
            number += 1
        paths.append(str(folder / f"part-{i}.tfrecord"))
        write_records(paths[-1], rows, record_format)
        if record_format.masking is not None:
            describe(paths[-1], record_format)
    return paths


def different_lengths(number, row):
    """For `make_files`: records of 4 to 16 pieces."""
    length = 4 + number * 7 % 13
    row["input_mask"] = [1] * length + [0] * (16 - length)
    row["masked_lm_positions"] = [1, 2, 3, 3]


def describe(path, record_format, objective=None):
    """Writes the JSON file beside records, with as much as reading them needs."""
    shard = {"file": os.path.basename(path), "size": os.path.getsize(path)}
    description = {
        "kind": KIND,
        "record_format": dataclasses.asdict(record_format),
        "shards": [shard],
        "settings": {"--objective": objective} if objective else {},
    }
    with open(sidecar_path(path), "w") as file:
        json.dump(description, file)


def tf_example(features):
    """A record by TensorFlow's own classes, its map in order: of lists of integers or of floats."""
    encoded = {}
    for name, values in features.items():
        if isinstance(values[0], float):
            encoded[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        else:
            encoded[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    example = tf.train.Example(features=tf.train.Features(feature=encoded))
    return example.SerializeToString(deterministic=True)


def flip(content, position):
    """The bytes with one bit changed."""
    changed = bytearray(content)
    changed[position] ^= 1
    return bytes(changed)


def flip_a_byte(path, records, damaged):
    """Corrupts the contents of one of a file's equally long records, counted from 0."""
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        content[len(content) // records * damaged + 50] ^= 0xFF  # beyond its length field
        file.seek(0)
        file.write(content)


def workers(count, replicas):
    """The input context of each of `count` workers with `replicas` replicas in all."""
    return [tf.distribute.InputContext(count, i, replicas) for i in range(count)]


def global_batches(datasets, local_replicas, count=None):
    """The workers' batches put together: a list of dicts of arrays."""
    taken = [list(d.take(count * local_replicas) if count else d) for d in datasets]
    assert len({len(batches) for batches in taken}) == 1
    result = []
    for start in range(0, len(taken[0]), local_replicas):
        parts = [b for batches in taken for b in batches[start : start + local_replicas]]
        result.append({name: np.concatenate([b[name] for b in parts]) for name in parts[0]})
    return result


def assert_same_batches(found, expected):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert list(one) == list(other)
        for name, values in one.items():
            np.testing.assert_array_equal(values, other[name], err_msg=name)


# Workers, replicas in all; the quick run has several replicas of one worker and of two.
LAYOUTS = (slow(1, 1), (1, 2), slow(2, 2), (2, 4))
