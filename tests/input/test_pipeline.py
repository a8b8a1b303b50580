"""Input: the order of examples is a function of seed and position, errors name bad records."""

import dataclasses
import functools
import types

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.pipeline import (
    evaluation_dataset,
    most_frequent_share,
    set_options,
    training_dataset,
)
from bert_tf.input.training_records import TrainingRecords
from tests.support.crosses import slow
from tests.support.record_files import (
    FORMAT,
    LAYOUTS,
    PACKED,
    global_batches,
    make_files,
    workers,
)
from tests.support.tiny_models import make_examples, tiny_model, training_config, two_devices

CONFIG = tiny_model().config
COUNTS = (7, 20, 13)


def first_ids(dataset, batches):
    """The records in the first `batches` batches, in order."""
    return [batch["input_ids"][:, 0].numpy().tolist() for batch in dataset.take(batches)]


def training(files, start_step=0, seed=1, record_format=FORMAT):
    return training_dataset(BatchPlan(files, record_format, CONFIG, 4, seed), start_step)


def test_an_epoch_is_every_record_once_in_another_order(tmp_path):
    files = make_files(tmp_path, COUNTS)
    batches = first_ids(training(files), 20)
    epochs = np.array(batches).reshape(2, 40).tolist()
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(40))
    assert epochs[0] != epochs[1] and epochs[0] != sorted(epochs[0])
    assert first_ids(training(files), 10) == batches[:10] != first_ids(training(files, seed=2), 10)


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
    expected = first_ids(training(files, start_step), 7)
    records = TrainingRecords(files, FORMAT, sum(COUNTS), CONFIG)
    config = types.SimpleNamespace(train_batch_size=4, seed=1, bucket_boundaries=())
    for strategy, devices in ((tf.distribute.get_strategy(), 1), (two_devices(), 2)):
        iterator = iter(records.batches(strategy, config, start_step))

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


FEATURES = {
    **dict.fromkeys(("input_ids", "input_mask", "segment_ids"), ([4, 16], "int32")),
    **dict.fromkeys(("masked_lm_positions", "masked_lm_ids"), ([4, 4], "int32")),
    "masked_lm_weights": ([4, 4], "float32"),
    "next_sentence_labels": ([4, 1], "int32"),
    "next_sentence_weights": ([4], "float32"),
}
PACKED_FEATURES = {
    **FEATURES,
    **dict.fromkeys(("segment_index", "position_ids"), ([4, 16], "int32")),
    **dict.fromkeys(("sequence_starts", "next_sentence_labels"), ([4, 3], "int32")),
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


@pytest.mark.parametrize(
    "sequences, boundary", ((0, True), (3, False), *(slow(*c) for c in ((0, False), (3, True))))
)
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
    dataset_of = functools.partial(evaluation_dataset, files, FORMAT, CONFIG, 4)
    assert [batch["input_ids"].shape[0] for batch in dataset_of(100)] == [4, 4, 4]
    assert len(list(dataset_of(2))) == 2
    dataset_of = functools.partial(dataset_of, 100)
    for strategy in (tf.distribute.get_strategy(), two_devices()):
        found = {"input_ids": [], "next_sentence_weights": [], "masked_lm_weights": []}
        for batch in strategy.distribute_datasets_from_function(dataset_of):
            for name, values in found.items():
                parts = strategy.experimental_local_results(batch[name])
                values += tf.concat(parts, axis=0).numpy().tolist()
        assert [ids[0] for ids in found["input_ids"]] == [*range(10), 0, 0]
        assert found["next_sentence_weights"] == [1] * 10 + [0, 0]
        assert sum(sum(weights) for weights in found["masked_lm_weights"]) == 10 * 3


@pytest.mark.parametrize("count, replicas", LAYOUTS)
@pytest.mark.parametrize("record_format", (slow(FORMAT), PACKED), ids=("ordinary", "packed"))
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


def test_most_frequent_share(tmp_path):
    def change(number, row):
        row["masked_lm_ids"] = [7, 7, number + 10, 7]  # the last has no weight

    files = make_files(tmp_path, (6,), change=change)
    assert most_frequent_share(files, FORMAT, CONFIG, 4, 100) == pytest.approx(2 / 3)


@pytest.mark.parametrize("kind", ("training", "evaluation", "fine-tuning"))
def test_an_input_has_no_tuner(tmp_path, kind):
    """Whose thread would hold up the end of a program."""
    files = make_files(tmp_path, [8])
    dataset = training(files)
    if kind == "evaluation":
        dataset = evaluation_dataset(files, FORMAT, CONFIG, 4, 2)
    elif kind == "fine-tuning":
        config = training_config(size=4, bucket_boundaries=(32,))
        dataset = make_examples(8).batches(tf.distribute.get_strategy(), config, 0)
    assert dataset.options().autotune.enabled is False
    assert len(list(dataset.take(2))) == 2


@pytest.mark.parametrize("threads", (None, 3))
def test_threads_of_its_own(threads):
    dataset = set_options(tf.data.Dataset.range(3), threads)
    assert dataset.options().threading.private_threadpool_size == threads
    assert [int(number) for number in dataset] == [0, 1, 2]
