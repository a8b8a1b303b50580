"""Input: the order of examples is a function of seed and position, bad records are named."""

import dataclasses
import os

import numpy as np
import pytest
import tensorflow as tf
from made_records import FORMAT, flip_a_byte, make_files
from tiny import tiny_model, two_devices

from bert_tf.input_pipeline import (
    check_records,
    evaluation_dataset,
    explain_failure,
    most_frequent_share,
    training_dataset,
)
from create_pretraining_data.records import count_records
from tokenization.errors import InputError

CONFIG = tiny_model().config
COUNTS = (7, 20, 13)


def first_ids(dataset, batches):
    """Which records are in the first so many batches, in order."""
    return [batch["input_ids"][:, 0].numpy().tolist() for batch in dataset.take(batches)]


def training(files, batch_size=4, seed=1, start_step=0):
    examples = sum(count_records(path) for path in files)
    return training_dataset(files, FORMAT, CONFIG, examples, batch_size, seed, start_step)


def test_an_epoch_is_every_record_once_in_another_order(tmp_path):
    files = make_files(tmp_path, COUNTS)
    batches = first_ids(training(files), 20)
    epochs = np.array(batches).reshape(2, 40)
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(40))
    assert epochs[0].tolist() != epochs[1].tolist()
    assert epochs[0].tolist() != sorted(epochs[0])


def test_the_order_follows_the_seed(tmp_path):
    files = make_files(tmp_path, COUNTS)
    assert first_ids(training(files, seed=1), 10) == first_ids(training(files, seed=1), 10)
    assert first_ids(training(files, seed=1), 10) != first_ids(training(files, seed=2), 10)


@pytest.mark.parametrize("start_step", (1, 9, 10, 25))
def test_a_resumed_run_reads_what_comes_next(tmp_path, start_step):
    files = make_files(tmp_path, COUNTS)
    expected = first_ids(training(files), start_step + 5)[start_step:]
    assert first_ids(training(files, start_step=start_step), 5) == expected


def test_two_devices_share_the_global_batch(tmp_path):
    files = make_files(tmp_path, COUNTS)
    strategy = two_devices()
    parts = iter(strategy.experimental_distribute_dataset(training(files)))
    for expected in first_ids(training(files), 12):
        both = strategy.experimental_local_results(next(parts)["input_ids"])
        assert [len(part) for part in both] == [2, 2]
        assert tf.concat(both, axis=0)[:, 0].numpy().tolist() == expected


def test_features_have_the_shapes_and_types_of_the_model(tmp_path):
    batch = next(iter(training(make_files(tmp_path, (4,)))))
    assert {name: (value.shape.as_list(), value.dtype.name) for name, value in batch.items()} == {
        "input_ids": ([4, 16], "int32"),
        "input_mask": ([4, 16], "int32"),
        "segment_ids": ([4, 16], "int32"),
        "masked_lm_positions": ([4, 4], "int32"),
        "masked_lm_ids": ([4, 4], "int32"),
        "masked_lm_weights": ([4, 4], "float32"),
        "next_sentence_labels": ([4, 1], "int32"),
        "next_sentence_weights": ([4], "float32"),
    }


def test_evaluation_reads_every_record_once(tmp_path):
    files = make_files(tmp_path, (5, 5))
    batches = list(evaluation_dataset(files, FORMAT, CONFIG, 4, 100))
    assert [batch["input_ids"].shape[0] for batch in batches] == [4, 4, 4]
    weights = np.concatenate([batch["next_sentence_weights"] for batch in batches])
    ids = np.concatenate([batch["input_ids"][:, 0] for batch in batches])
    assert ids[weights > 0].tolist() == list(range(10))
    assert sum(float(tf.reduce_sum(batch["masked_lm_weights"])) for batch in batches) == 10 * 3
    assert len(list(evaluation_dataset(files, FORMAT, CONFIG, 4, 2))) == 2


def test_most_frequent_share(tmp_path):
    def change(number, row):
        row["masked_lm_ids"] = [7, 7, number + 10, 7]  # the last has no weight

    files = make_files(tmp_path, (6,), change=change)
    assert most_frequent_share(files, FORMAT) == pytest.approx(2 / 3)


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
    with pytest.raises(InputError) as error:
        check(files, **arguments)
    assert all(word in str(error.value) for word in (*words, files[0]))


@pytest.mark.parametrize(
    "name, value",
    (
        ("input_ids", 60),
        ("input_ids", -1),
        ("masked_lm_ids", 60),
        ("masked_lm_positions", 16),
        ("segment_ids", 2),
        ("next_sentence_labels", 2),
    ),
)
def test_values_out_of_range_name_the_record(tmp_path, name, value):
    def change(number, row):
        if number == 8:
            row[name][-1] = value

    files = make_files(tmp_path, (5, 6), change=change)
    with pytest.raises(InputError) as error:
        check(files)
    for word in (files[1], "record 4", name, str(value)):
        assert word in str(error.value)


def test_values_out_of_range_further_on_are_found_while_reading(tmp_path):
    def change(number, row):
        if number == 50:
            row["input_ids"][3] = 60

    files = make_files(tmp_path, (60,), change=change)
    assert check(files) == (FORMAT, 60)  # only the beginning of a file is looked at
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(training(files).take(15))
    message = str(explain_failure(files, FORMAT, CONFIG))
    assert files[0] in message and "record 51" in message and "60" in message


def test_damage_further_on_is_found_while_reading(tmp_path):
    files = make_files(tmp_path, (60, 60, 60))
    flip_a_byte(files[1], 60, damaged=53)
    assert check(files) == (FORMAT, 180)
    with pytest.raises(tf.errors.DataLossError):
        list(training(files).take(45))
    message = str(explain_failure(files, FORMAT, CONFIG))
    assert files[1] in message and "after 53 good ones" in message


def test_damage_at_the_beginning_is_found_at_once(tmp_path):
    files = make_files(tmp_path, (60, 60))
    flip_a_byte(files[1], 60, damaged=5)
    with pytest.raises(InputError) as error:
        check(files)
    assert files[1] in str(error.value) and "after 5 good ones" in str(error.value)


@pytest.mark.parametrize("missing", (1, 5, 13, 100))
def test_a_file_that_ends_within_a_record_is_found_at_once(tmp_path, missing):
    files = make_files(tmp_path, (60, 60))
    os.truncate(files[1], os.path.getsize(files[1]) - missing)
    with pytest.raises(InputError) as error:
        check(files)
    assert files[1] in str(error.value) and "ends within record 60" in str(error.value)


def test_a_file_that_ends_within_a_length_is_found_at_once(tmp_path):
    """TensorFlow reads such a file without a word."""
    files = make_files(tmp_path, (60,))
    size = os.path.getsize(files[0])
    with open(files[0], "ab") as file:
        file.write(bytes(7))
    assert os.path.getsize(files[0]) == size + 7
    with pytest.raises(InputError, match="after record 60 with the beginning of another"):
        check(files)


def test_whole_files_need_no_explanation(tmp_path):
    assert explain_failure(make_files(tmp_path, (5,)), FORMAT, CONFIG) is None


def test_files_must_agree_about_sentence_labels(tmp_path):
    (tmp_path / "other").mkdir()
    without = dataclasses.replace(FORMAT, sentence_label=False)
    files = make_files(tmp_path, (3,)) + make_files(tmp_path / "other", (3,), without)
    with pytest.raises(InputError, match="or none"):
        check(files)


def test_an_empty_file_is_named(tmp_path):
    files = make_files(tmp_path, (3,))
    open(files[0], "wb").close()
    with pytest.raises(InputError, match="no record"):
        check(files)
