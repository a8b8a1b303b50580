"""Records that do not fit are named before training, damaged ones when they are read."""

import dataclasses
import gzip
from pathlib import Path

import pytest
import tensorflow as tf

from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.pipeline import evaluation_dataset, training_dataset
from bert_tf.input.record_checks import check_records, explain_failure
from tests.support.crosses import slow
from tests.support.record_files import (
    DYNAMIC,
    FORMAT,
    PACKED,
    PACKED_DYNAMIC,
    flip,
    flip_a_byte,
    make_files,
)
from tests.support.refusals import refused
from tests.support.tiny_models import tiny_model

CONFIG = tiny_model().config


def check(files, length=16, places=4, config=CONFIG):
    return check_records(files, length, places, config)


def test_good_records_pass(tmp_path):
    files = make_files(tmp_path, (7, 20, 13))
    assert check(files) == (FORMAT, 40) and explain_failure(files, FORMAT, CONFIG) is None
    for arguments, words in (
        ({"length": 128}, ("--max_seq_length=128", "has 16")),
        ({"places": 20}, ("--max_predictions_per_seq=20", "has 4")),
    ):
        with refused(*words, files[0]):
            check(files, **arguments)
    open(files[1], "wb").close()
    with refused("no record"):
        check(files)


LENGTH, PLACES = "max_seq_length", "max_predictions_per_seq"


@pytest.mark.parametrize(
    "record_format, name, value, message",
    (
        # No flag would help, and perhaps none was given: the first file's JSON file has the value.
        (FORMAT, LENGTH, 8, f"the same {LENGTH}. Received: 16 in {{}}, 8 in {{}}"),
        (FORMAT, PLACES, 8, f"the same {PLACES}. Received: 4 in {{}}, 8 in {{}}"),
        (FORMAT, "sentence_label", False, "or none"),
        (PACKED, "packed_sequences", 0, "3 in {}, 0 in {}"),
        (PACKED, "packed_sequences", 2, "3 in {}, 2 in {}"),
    ),
)
def test_files_of_two_formats_are_refused(tmp_path, record_format, name, value, message):
    (tmp_path / "other").mkdir()
    other = dataclasses.replace(record_format, **{name: value})
    files = make_files(tmp_path, (3,), record_format) + make_files(tmp_path / "other", (3,), other)
    with refused(message.format(*files)):
        check(files)
    assert check(files[:1]) == (record_format, 3)


@pytest.mark.parametrize(
    "record_format, name, value",
    (
        (FORMAT, "input_ids", 60),
        (FORMAT, "input_ids", -1),
        (FORMAT, "masked_lm_ids", 60),
        (FORMAT, "masked_lm_positions", 16),
        (FORMAT, "segment_ids", 2),
        (FORMAT, "next_sentence_labels", 2),
        (PACKED, "segment_index", 4),
        (PACKED, "position_ids", 32),
        slow(PACKED, "sequence_starts", 16),
        (PACKED, "sequence_starts", -1),
        slow(PACKED, "next_sentence_labels", 2),
    ),
    ids=lambda each: "packed" if each is PACKED else "ordinary" if each is FORMAT else None,
)
def test_values_out_of_range_name_the_record(tmp_path, record_format, name, value):
    def change(number, row):
        if number == 8:
            row[name][-1] = value

    files = make_files(tmp_path, (5, 6), record_format, change=change)
    with refused(files[1], "record 4", name, value) as error:
        check(files)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name} must be in"):
        list(evaluation_dataset(files, record_format, CONFIG, 4, 10))
    assert str(explain_failure(files, record_format, CONFIG)) == str(error.value)


@pytest.mark.parametrize(
    "record_format, size",
    (
        (DYNAMIC, {"type_vocab_size": 1}),
        (PACKED_DYNAMIC, {"type_vocab_size": 1}),
        (PACKED_DYNAMIC, {"max_position_embeddings": 9}),
    ),
)
def test_what_drawing_masks_would_bring_out_of_range(tmp_path, record_format, size):
    """Neither number is in a record without masks; on a GPU there would be no error."""
    files = make_files(tmp_path, (12,), record_format)
    config = dataclasses.replace(CONFIG, **size)
    shape = record_format.max_seq_length, record_format.max_predictions_per_seq
    name = "segment_ids" if "type_vocab_size" in size else "position_ids"
    with refused(files[0], name, *size):
        check(files, *shape, config)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name} must be in"):
        list(evaluation_dataset(files, record_format, config, 4, 10))
    # A sequence that ends with the last position is in order.
    enough = {name: 2 if name == "type_vocab_size" else 10 for name in size}
    assert check(files, *shape, dataclasses.replace(CONFIG, **enough)) == (record_format, 12)


def test_values_out_of_range_further_on_are_found_while_reading(tmp_path):
    def change(number, row):
        if number == 50:
            row["input_ids"][3] = 60

    files = make_files(tmp_path, (60,), change=change)
    assert check(files) == (FORMAT, 60)  # only the beginning of a file is looked at
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(training_dataset(BatchPlan(files, FORMAT, CONFIG, 4, 1)).take(15))
    message = str(explain_failure(files, FORMAT, CONFIG))
    assert files[0] in message and "record 51" in message and "60" in message


def test_damage_further_on_is_found_while_reading(tmp_path):
    files = make_files(tmp_path, (60, 60, 60))
    flip_a_byte(files[1], 60, damaged=53)
    assert check(files) == (FORMAT, 180)
    with pytest.raises(tf.errors.DataLossError):
        list(training_dataset(BatchPlan(files, FORMAT, CONFIG, 4, 1)).take(45))
    message = str(explain_failure(files, FORMAT, CONFIG))
    assert files[1] in message and "after 53 good ones" in message


def with_byte(content, position, value):
    return content[:position] + bytes([value]) + content[position + 1 :]


@pytest.mark.parametrize(
    "damage, said",
    (
        (lambda content, size: content[: 4 * size - 10], "ends within record 4"),
        (lambda content, size: content[: 4 * size + 5], "after record 4 with the beginning of"),
        (lambda content, size: flip(content, 3 * size + 60), "after 3 good ones"),
        (lambda content, size: flip(content, 3 * size + 9), "after 3 good ones"),  # a checksum
        (lambda content, size: flip(content, 3 * size + 2), "ends within record 4"),  # its length
        # A length that is larger than any memory.
        (lambda content, size: with_byte(content, size + 7, 0x40), "ends within record 2"),
        (lambda content, size: with_byte(content, size + 7, 0xFF), "ends within record 2"),
        (lambda content, size: content[:-1], "ends within record 60"),
        (lambda content, size: content[:-13], "ends within record 60"),
        # TensorFlow reads such a file without a word.
        (lambda content, size: content + bytes(7), "after record 60 with the beginning of another"),
    ),
)
@pytest.mark.parametrize("compress", (bytes, gzip.compress), ids=("plain", "gzip"))
def test_damage_is_found_at_once_and_explained(tmp_path, damage, said, compress):
    files = make_files(tmp_path, (5, 60))
    contents = [Path(path).read_bytes() for path in files]
    contents[1] = damage(contents[1], len(contents[1]) // 60)
    for path, content in zip(files, contents, strict=True):
        Path(path).write_bytes(compress(content))
    if compress is gzip.compress and said.startswith("after record"):
        said = f"ends within record {int(said.split()[2]) + 1}"
    message = f"{files[1]} must be a complete TFRecord file."
    with refused(message, said):
        check(files)
    found = str(explain_failure(files, FORMAT, CONFIG))
    assert found.startswith(message) and said in found
