"""Records that do not fit are named before training, damaged ones when they are read."""

import dataclasses
import gzip
import os
from pathlib import Path

import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.pipeline import evaluation_dataset, training_dataset
from bert_tf.input.record_checks import check_records, explain_failure
from create_pretraining_data.records.tfrecord import FRAME
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
COUNTS = (7, 20, 13)


def check(files, length=16, places=4, config=CONFIG):
    return check_records(files, length, places, config)


def test_good_records_pass(tmp_path):
    assert check(make_files(tmp_path, COUNTS)) == (FORMAT, 40)


@pytest.mark.parametrize(
    "arguments, words",
    (
        ({"length": 128}, ("--max_seq_length=128", "has 16")),
        ({"places": 20}, ("--max_predictions_per_seq=20", "has 4")),
    ),
)
def test_shapes_that_disagree_name_both(tmp_path, arguments, words):
    files = make_files(tmp_path, (3,))
    with refused(*words, files[0]):
        check(files, **arguments)


@pytest.mark.parametrize("name", ("max_seq_length", "max_predictions_per_seq"))
def test_files_of_two_shapes_name_both(tmp_path, name):
    """No flag would help, and perhaps none was given: the first file's JSON file has the value."""
    other = dataclasses.replace(FORMAT, **{name: 8})
    (tmp_path / "other").mkdir()
    files = [*make_files(tmp_path, (3,)), *make_files(tmp_path / "other", (3,), other)]
    own = getattr(FORMAT, name)
    with refused(f"the same {name}. Received: {own} in {files[0]}, 8 in {files[1]}"):
        check(files)


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


@pytest.mark.parametrize(
    "damage, said",
    (
        (lambda content, size: content[: 4 * size - 10], "ends within record 4"),
        (lambda content, size: content[: 4 * size + 5], "after record 4 with the beginning of"),
        (lambda content, size: flip(content, 3 * size + 60), "after 3 good ones"),
        (lambda content, size: flip(content, 3 * size + 9), "after 3 good ones"),  # a checksum
        (lambda content, size: flip(content, 3 * size + 2), "ends within record 4"),  # its length
    ),
)
@pytest.mark.parametrize("compress", (bytes, gzip.compress), ids=("plain", "gzip"))
def test_what_failed_is_explained_by_the_damage(tmp_path, damage, said, compress):
    files = make_files(tmp_path, (5, 5))
    content = Path(files[1]).read_bytes()
    damaged = damage(content, len(content) // 5)
    for path, changed in zip(files, (content, damaged), strict=True):
        Path(path).write_bytes(compress(changed))
    message = str(explain_failure(files, FORMAT, CONFIG))
    if compress is gzip.compress and said.startswith("after record 4"):
        said = "ends within record 5"
    assert message.startswith(f"{files[1]} must be a complete TFRecord file.") and said in message


def test_damage_at_the_beginning_is_found_at_once(tmp_path):
    files = make_files(tmp_path, (60, 60))
    flip_a_byte(files[1], 60, damaged=5)
    with refused(files[1], "after 5 good ones"):
        check(files)


@pytest.mark.parametrize("missing", (1, 5, 13, 100))
def test_a_file_that_ends_within_a_record_is_found_at_once(tmp_path, missing):
    files = make_files(tmp_path, (60, 60))
    os.truncate(files[1], os.path.getsize(files[1]) - missing)
    with refused(files[1], "ends within record 60"):
        check(files)


def test_a_file_that_ends_within_a_length_is_found_at_once(tmp_path):
    """TensorFlow reads such a file without a word."""
    files = make_files(tmp_path, (60,))
    with open(files[0], "ab") as file:
        file.write(bytes(7))
    with pytest.raises(InputError, match="after record 60 with the beginning of another"):
        check(files)


@pytest.mark.parametrize("damaged", (0x40, 0xFF))
def test_a_damaged_length_in_a_compressed_file_is_found_at_once(tmp_path, damaged):
    """It says that the record is larger than any memory."""
    files = make_files(tmp_path, (60,))
    with open(files[0], "rb") as file:
        content = bytearray(file.read())
    content[FRAME + int.from_bytes(content[:8], "little") + 7] = damaged  # of the second record
    with open(files[0], "wb") as file:
        file.write(gzip.compress(content))
    with pytest.raises(InputError, match="TFRecord file. Received: it ends within record 2"):
        check(files)


def test_whole_files_need_no_explanation(tmp_path):
    assert explain_failure(make_files(tmp_path, (5,)), FORMAT, CONFIG) is None


def test_files_must_agree_about_sentence_labels(tmp_path):
    (tmp_path / "other").mkdir()
    without = dataclasses.replace(FORMAT, sentence_label=False)
    files = make_files(tmp_path, (3,)) + make_files(tmp_path / "other", (3,), without)
    with pytest.raises(InputError, match="or none"):
        check(files)


@pytest.mark.parametrize("sequences", (0, 2))
def test_files_must_agree_about_packing(tmp_path, sequences):
    (tmp_path / "other").mkdir()
    other = dataclasses.replace(FORMAT, packed_sequences=sequences)
    files = make_files(tmp_path, (3,), PACKED) + make_files(tmp_path / "other", (3,), other)
    with refused(f"3 in {files[0]}, {sequences} in {files[1]}"):
        check(files)
    assert check(files[:1]) == (PACKED, 3)


def test_an_empty_file_is_named(tmp_path):
    files = make_files(tmp_path, (3,))
    open(files[0], "wb").close()
    with pytest.raises(InputError, match="no record"):
        check(files)
