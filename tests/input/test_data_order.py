"""The order of examples continues where it was, whatever settings have changed."""

import types
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.data_order import DataOrder, continue_order, number_of_boundaries, sizes_of
from bert_tf.input.length_buckets import WINDOW
from bert_tf.training.state import TrainingState
from create_pretraining_data.records.reader import read_format
from finetuning.examples import UNSORTED_WINDOWS
from tests.support.programs import NO_DROPOUT, ClassifierJob, PretrainingJob, arrays, spoken_lines
from tests.support.record_files import different_lengths, make_files
from tests.support.task_data import single_rows, write_splits
from tests.support.tiny_models import make_examples, training_config

# Batch size, seed, number of examples, boundaries, data.
SETTINGS = (8, 1, 40, (), 77)
NUMBERS = (8, 1, 40, 0, 77)  # as an order holds them


def examples_config(boundaries, size):
    return training_config(size=size, bucket_boundaries=boundaries, seed=1)


def continue_with(state, batch_size, seed, examples, boundaries, data):
    config = training_config(size=batch_size, seed=seed, bucket_boundaries=boundaries)
    return continue_order(state, config, examples, data)


def test_the_same_settings_keep_the_order():
    order = DataOrder(0, 0, *NUMBERS)
    state = types.SimpleNamespace(order=order, step=10)
    assert continue_with(state, *SETTINGS) == (0, 0) and state.order == order
    assert order.changes(*NUMBERS) == [] and order.examples_before(10) == 80
    # Other lengths of batches begin another one.
    before = DataOrder(0, 0, 8, 1, 40, 9, 77)
    said = "the lengths of --bucket_boundaries are not the same"
    assert before.changes(8, 1, 40, 10, 77) == [said] and before.changes(8, 1, 40, 9, 77) == []
    # Checkpoints of Google's code hold no order: every update took a batch of this size.
    state = types.SimpleNamespace(order=None, step=5)
    assert continue_with(state, *SETTINGS) == (0, 0)
    assert state.order.examples_before(5) == 40


@pytest.mark.parametrize(
    "settings, said",
    (
        ((4, 1, 40, (), 77), "--train_batch_size was 8 and is 4"),
        ((8, 2, 40, (), 77), "--random_seed was 1 and is 2"),
        ((8, 1, 20, (), 78), "the number of examples was 40 and is 20"),
        ((8, 1, 40, (8, 16), 77), "--bucket_boundaries was off and is on"),
        ((8, 1, 40, (), 78), "the training data, or its order, is not the same"),
    ),
)
def test_other_settings_begin_after_what_was_seen(settings, said):
    state = types.SimpleNamespace(order=DataOrder(0, 0, *NUMBERS), step=10)
    with pytest.warns(UserWarning, match=f"^{said}: the order of examples changes at step 10"):
        continue_with(state, *settings)
    batch_size, seed, examples, boundaries, data = settings
    numbers = (batch_size, seed, examples, number_of_boundaries(boundaries), data)
    assert state.order == (10, 80, *numbers)
    # And once more, in the middle of that part.
    state.step, position = 13, 80 + 3 * batch_size
    with pytest.warns(UserWarning, match=f"after the {position} examples seen so far"):
        continue_with(state, 16, 3, 40, (), 5)
    assert state.order == (13, position, 16, 3, 40, 0, 5)
    assert state.order.examples_before(14) == position + 16


def test_a_checkpoint_of_release_0_1_0_continues():
    """It holds one number more."""
    counts = {name: tf.Variable(0) for name in ("iterations", "skipped")}
    state = TrainingState(None, types.SimpleNamespace(**counts))
    state.set(7, {"data_order": np.array([3, 24, *NUMBERS, 1])})
    assert state.order == DataOrder(3, 24, *NUMBERS)


def test_the_lengths_of_batches_are_noticed(tmp_path):
    """As examples are shared out by them, other lengths are another order."""
    files = make_files(tmp_path, (47, 60, 43), change=different_lengths)
    plan = BatchPlan(files, read_format(files[0]), None, batch_size=4, seed=1)
    plans = [replace(plan, boundaries=lengths) for lengths in ((6, 16), (4, 9, 16), ())]
    found = [[plan.names(step) for step in range(2)] for plan in plans]
    assert found[0] != found[1] != found[2]
    examples = make_examples(150)
    start = UNSORTED_WINDOWS * WINDOW  # the first sorted window
    found = [
        [examples.names(examples_config(boundaries, 4), step) for step in range(start, start + 18)]
        for boundaries in ((8, 32), (16, 24, 32), (32,))
    ]
    assert found[0] != found[1] != found[2]
    numbers = [number_of_boundaries(each) for each in ((8, 32), (8, 24, 32), (32,), ())]
    assert len({*numbers}) == 3 and numbers[2:] == [0, 0] and min(numbers[:2]) > 1


@pytest.mark.slow
def test_pretraining_continues(tmp_path, capsys):
    """First as it began; then with other settings, of which a warning tells."""
    job = PretrainingJob(tmp_path, **NO_DROPOUT)
    flags = {"input_file": ",".join(job.files)}
    assert [job.run(num_train_steps=steps, **flags) for steps in (3, 6)] == [0, 0]
    assert spoken_lines(capsys.readouterr().err) == []
    order = arrays(job.output, 6)["data_order"].tolist()
    assert order[:6] == [0, 0, 8, 12345, 40, 0]
    flags = {"input_file": ",".join(reversed(job.files))}
    flags |= {"bucket_boundaries": "8", "train_batch_size": 4}
    assert job.run(num_train_steps=7, **flags) == 0
    shown = capsys.readouterr()
    assert "steps 7 to 7, 1.3 passes over 40 examples" in shown.out  # 48 examples, then 4
    assert spoken_lines(shown.err) == [
        "warning: --train_batch_size was 8 and is 4; --bucket_boundaries was off and is on; the "
        "training data, or its order, is not the same: the order of examples changes at "
        "step 6, after the 48 examples seen so far"
    ]
    again = arrays(job.output, 7)["data_order"].tolist()
    assert again[:5] == [6, 48, 4, 12345, 40] and again[6] != order[6]
    assert again[5] == number_of_boundaries((8, 16))


@pytest.mark.slow
def test_fine_tuning_continues(tmp_path, capsys):
    """Likewise."""
    job = ClassifierJob(tmp_path)
    write_splits(job.data, ["text", "label"], single_rows(50), train=(0, 44), dev=(44, 50))
    flags = {"bucket_boundaries": "4,6"}
    assert [job.run(train_step=steps, **flags) for steps in (3, 6)] == [0, 0]
    assert spoken_lines(capsys.readouterr().err) == []
    order = arrays(job.output, 6)["data_order"].tolist()
    assert order[:5] == [0, 0, 8, 12345, 44] and order[5] == number_of_boundaries((4, 6, 16))
    flags |= {"train_batch_size": 4, "random_seed": 7}
    flags |= {"bucket_boundaries": "none", "max_seq_length": 6}  # which cuts some examples
    assert job.run(train_step=7, **flags) == 0
    assert spoken_lines(capsys.readouterr().err) == [
        "warning: --train_batch_size was 8 and is 4; --random_seed was 12345 and is 7; "
        "--bucket_boundaries was on and is off; the training data, or its order, is not the same: "
        "the order of examples changes at step 6, after the 48 examples seen so far"
    ]
    assert arrays(job.output, 7)["data_order"].tolist()[:6] == [6, 48, 4, 7, 44, 0]


@pytest.mark.parametrize("boundaries", ((32,), (8, 32)))
def test_no_example_comes_twice_in_a_pass_that_went_on_otherwise(boundaries):
    """Eight at a time, then four: still every example once."""
    examples, state = make_examples(96), types.SimpleNamespace(order=None, step=0)
    before, after = examples_config((32,), 8), examples_config(boundaries, 4)
    first = examples.in_order(state, before)
    seen = [name for step in range(4) for name in first.names(before, step)]
    state.step = 4
    with pytest.warns(UserWarning, match="after the 32 examples seen so far"):
        second = examples.in_order(state, after)
    seen += [name for step in range(4, 20) for name in second.names(after, step)]
    assert sorted(seen) == sorted(examples.ids)


def test_workers_tell_record_files_apart(tmp_path):
    """By names and sizes; not by the folder, which each machine may call otherwise."""
    files = make_files(tmp_path, (4, 4))
    (tmp_path / "other").mkdir()
    assert sizes_of(files) != sizes_of(make_files(tmp_path / "other", (4, 5)))
    same = make_files(tmp_path / "other", (4, 4))
    assert sizes_of(files) == sizes_of(same) != sizes_of(files[:1])
