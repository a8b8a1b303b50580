"""Input: the order of examples is a function of seed and position, bad records are named."""

import dataclasses
import os

import numpy as np
import pytest
import tensorflow as tf
from made_records import FORMAT, PACKED, flip_a_byte, make_files
from tiny import tiny_model, two_devices

from bert_tf.input_pipeline import (
    check_records,
    distribute_evaluation,
    distribute_training,
    evaluation_dataset,
    explain_failure,
    most_frequent_share,
    step_records,
    training_dataset,
)
from create_pretraining_data.records import count_records
from tokenization.errors import InputError

CONFIG = tiny_model().config
COUNTS = (7, 20, 13)


def first_ids(dataset, batches):
    """Which records are in the first so many batches, in order."""
    return [batch["input_ids"][:, 0].numpy().tolist() for batch in dataset.take(batches)]


def training(files, batch_size=4, seed=1, start_step=0, shard=None, record_format=FORMAT):
    examples = sum(count_records(path) for path in files)
    return training_dataset(
        files, record_format, CONFIG, examples, batch_size, seed, start_step, shard
    )


def workers(count, replicas):
    """What tells each of so many workers, with so many replicas in all, its part."""
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


LAYOUTS = ((1, 1), (1, 2), (2, 2), (2, 4))  # workers, replicas in all


@pytest.mark.parametrize("count, replicas", LAYOUTS)
@pytest.mark.parametrize(
    "record_format, start_step", ((FORMAT, 9), (PACKED, 0)), ids=("ordinary", "packed")
)
def test_workers_share_the_global_batch(tmp_path, count, replicas, record_format, start_step):
    files = make_files(tmp_path, COUNTS, record_format)
    whole = training(files, record_format=record_format)
    expected = global_batches([whole], 1, start_step + 6)[start_step:]
    datasets = [
        training(files, start_step=start_step, shard=shard, record_format=record_format)
        for shard in workers(count, replicas)
    ]
    for dataset in datasets:
        assert {spec.shape[0] for spec in dataset.element_spec.values()} == {4 // replicas}
        assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert_same_batches(global_batches(datasets, replicas // count, 6), expected)


def test_a_worker_does_not_parse_what_is_not_its_own(tmp_path):
    def change(number, row):
        if number == 5:
            row["input_ids"][3] = 60

    files = make_files(tmp_path, (8,), change=change)
    datasets = [evaluation_dataset(files, FORMAT, CONFIG, 8, 1, shard) for shard in workers(2, 2)]
    assert first_ids(datasets[0], 1) == [[0, 1, 2, 3]]
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(datasets[1])


def test_a_strategy_hands_every_device_its_part(tmp_path):
    """The iterator is used as training uses it: several steps in one call."""
    files, start_step = make_files(tmp_path, COUNTS), 9
    expected = first_ids(training(files, start_step=start_step), 7)
    for strategy, devices in ((tf.distribute.get_strategy(), 1), (two_devices(), 2)):
        iterator = iter(
            distribute_training(strategy, files, FORMAT, CONFIG, sum(COUNTS), 4, 1, start_step)
        )

        @tf.function
        def several_steps(iterator, steps, strategy=strategy, devices=devices):
            seen = tf.TensorArray(tf.int32, steps)
            for step in tf.range(steps):
                batch = next(iterator)
                ids = strategy.run(lambda batch: batch["input_ids"][:, 0], args=(batch,))
                ids = strategy.experimental_local_results(ids)
                assert [part.shape for part in ids] == [[4 // devices]] * devices
                seen = seen.write(step, tf.concat(ids, axis=0))
            return seen.stack()

        found = [*several_steps(iterator, tf.constant(3)), *several_steps(iterator, tf.constant(4))]
        assert np.array(found).tolist() == expected


@pytest.mark.parametrize("step", (0, 1, 9, 10, 25))
def test_the_records_of_a_step_are_known(tmp_path, step):
    files = make_files(tmp_path, COUNTS)
    first = dict(zip(files, np.cumsum((0, *COUNTS)), strict=False))
    found = step_records(files, sum(COUNTS), 4, 1, step)
    ids = [first[path] + number - 1 for path, number in found]
    assert [ids] == first_ids(training(files, start_step=step), 1)
    assert {path for path, _ in step_records(files, sum(COUNTS), 40, 1, 0)} == set(files)


FEATURES = {
    "input_ids": ([4, 16], "int32"),
    "input_mask": ([4, 16], "int32"),
    "segment_ids": ([4, 16], "int32"),
    "masked_lm_positions": ([4, 4], "int32"),
    "masked_lm_ids": ([4, 4], "int32"),
    "masked_lm_weights": ([4, 4], "float32"),
    "next_sentence_labels": ([4, 1], "int32"),
    "next_sentence_weights": ([4], "float32"),
}
PACKED_FEATURES = {
    **FEATURES,
    "segment_index": ([4, 16], "int32"),
    "position_ids": ([4, 16], "int32"),
    "sequence_starts": ([4, 3], "int32"),
    "next_sentence_labels": ([4, 3], "int32"),
    "next_sentence_weights": ([4, 3], "float32"),
}


@pytest.mark.parametrize(
    "record_format, expected",
    ((FORMAT, FEATURES), (PACKED, PACKED_FEATURES)),
    ids=("ordinary", "packed"),
)
def test_features_have_the_shapes_and_types_of_the_model(tmp_path, record_format, expected):
    files = make_files(tmp_path, (4,), record_format)
    batch = next(iter(training(files, record_format=record_format)))
    shapes = {name: (value.shape.as_list(), value.dtype.name) for name, value in batch.items()}
    assert shapes == expected


@pytest.mark.parametrize("boundary", (True, False))
@pytest.mark.parametrize("sequences", (0, 3))
def test_features_without_labels(tmp_path, sequences, boundary):
    record_format = dataclasses.replace(
        FORMAT, sentence_label=False, token_boundary=boundary, packed_sequences=sequences
    )

    def change(number, row):
        if boundary:
            row["token_boundary"] = [1] * 16

    files = make_files(tmp_path, (4,), record_format, change=change)
    batch = next(iter(training(files, record_format=record_format)))
    assert not [name for name in batch if name.startswith("next_sentence")]
    assert "token_boundary" not in batch
    assert ("sequence_starts" in batch) == (sequences > 0)


def test_evaluation_reads_every_record_once(tmp_path):
    files = make_files(tmp_path, (5, 5))
    batches = list(evaluation_dataset(files, FORMAT, CONFIG, 4, 100))
    assert [batch["input_ids"].shape[0] for batch in batches] == [4, 4, 4]
    weights = np.concatenate([batch["next_sentence_weights"] for batch in batches])
    ids = np.concatenate([batch["input_ids"][:, 0] for batch in batches])
    assert ids[weights > 0].tolist() == list(range(10))
    assert sum(float(tf.reduce_sum(batch["masked_lm_weights"])) for batch in batches) == 10 * 3
    assert len(list(evaluation_dataset(files, FORMAT, CONFIG, 4, 2))) == 2


@pytest.mark.parametrize("count, replicas", LAYOUTS)
@pytest.mark.parametrize("record_format", (FORMAT, PACKED), ids=("ordinary", "packed"))
def test_workers_evaluate_every_record_once(tmp_path, count, replicas, record_format):
    rows = {}
    files = make_files(tmp_path, (5, 5), record_format, change=rows.__setitem__)
    datasets = [
        evaluation_dataset(files, record_format, CONFIG, 8, 100, shard)
        for shard in workers(count, replicas)
    ]
    batches = global_batches(datasets, replicas // count)
    assert [len(batch["input_ids"]) for batch in batches] == [8, 8]
    for name in batches[0]:
        values = np.concatenate([batch[name] for batch in batches])
        written = [row.get(name, 1.0) for row in rows.values()]
        np.testing.assert_array_equal(values[:10], written, err_msg=name)
        assert not values[10:].any(), name  # no token, no weight


def test_a_strategy_evaluates_every_record_once(tmp_path):
    files = make_files(tmp_path, (5, 5))
    for strategy in (tf.distribute.get_strategy(), two_devices()):
        ids, weight = [], 0.0
        for batch in distribute_evaluation(strategy, files, FORMAT, CONFIG, 4, 100):
            parts = strategy.experimental_local_results(batch["input_ids"])
            ids += tf.concat(parts, axis=0)[:, 0].numpy().tolist()
            parts = strategy.experimental_local_results(batch["next_sentence_weights"])
            weight += float(tf.reduce_sum(tf.concat(parts, axis=0)))
        assert ids == [*range(10), 0, 0] and weight == 10


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


@pytest.mark.parametrize(
    "name, value",
    (
        ("segment_index", 4),
        ("position_ids", 32),
        ("sequence_starts", 16),
        ("sequence_starts", -1),
        ("next_sentence_labels", 2),
    ),
)
def test_values_out_of_range_in_a_packed_row(tmp_path, name, value):
    def change(number, row):
        if number == 8:
            row[name][-1] = value

    files = make_files(tmp_path, (5, 6), PACKED, change=change)
    with pytest.raises(InputError) as error:
        check(files)
    for word in (files[1], "record 4", name, str(value)):
        assert word in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{name} must be in"):
        list(evaluation_dataset(files, PACKED, CONFIG, 4, 10))
    assert str(explain_failure(files, PACKED, CONFIG)) == str(error.value)


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


@pytest.mark.parametrize("sequences", (0, 2))
def test_files_must_agree_about_packing(tmp_path, sequences):
    (tmp_path / "other").mkdir()
    other = dataclasses.replace(FORMAT, packed_sequences=sequences)
    files = make_files(tmp_path, (3,), PACKED) + make_files(tmp_path / "other", (3,), other)
    with pytest.raises(InputError) as error:
        check(files)
    message = str(error.value)
    assert f"3 in {files[0]}, {sequences} in {files[1]}" in message and "\n" not in message
    assert check(files[:1]) == (PACKED, 3)


def test_an_empty_file_is_named(tmp_path):
    files = make_files(tmp_path, (3,))
    open(files[0], "wb").close()
    with pytest.raises(InputError, match="no record"):
        check(files)
