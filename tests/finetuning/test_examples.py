"""Examples in memory: the order, the share of every device, the lengths of batches."""

import collections
import itertools

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.input.length_buckets import BUCKET, WINDOW, compilation_cost_in_positions
from finetuning.examples import (
    LENGTH_STEP,
    MAX_LENGTHS,
    UNSORTED_WINDOWS,
    batch_indices,
    choose_boundaries,
)
from tests.support.record_files import workers
from tests.support.tiny_models import make_examples, training_config, two_devices

BOUNDARIES = (8, 16, 24, 32)
SORTED = UNSORTED_WINDOWS * WINDOW  # the first batch of a sorted window


def config(boundaries=(32,), size=4, seed=1):
    return training_config(size=size, bucket_boundaries=boundaries, seed=seed)


def order(examples, config, start, end):
    """The examples of the steps from one to another, [steps, G]."""
    return np.array([batch_indices(examples.lengths, config, i) for i in range(start, end)])


class Worker:
    """Stands in for a strategy, with the dataset of one worker."""

    def __init__(self, context):
        self.context = context

    def distribute_datasets_from_function(self, make):
        return make(self.context)


def read(examples, config, start, steps, count=1, replicas=1):
    """The global batches that so many workers read together, with the numbers of boundaries."""
    local = replicas // count
    taken = [
        list(examples.batches(Worker(context), config, start).take(steps * local))
        for context in workers(count, replicas)
    ]
    for step in range(steps):
        parts = [b for batches in taken for b in batches[step * local : (step + 1) * local]]
        buckets = {int(part.pop(BUCKET)) for part in parts}
        assert len(buckets) == 1  # the devices run the same step
        yield {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}, buckets.pop()


def test_an_epoch_is_every_example_once_in_another_order():
    found = order(make_examples(40), config(), 0, 20).reshape(2, 40)
    assert sorted(found[0]) == sorted(found[1]) == list(range(40))
    assert found[0].tolist() != found[1].tolist() != sorted(found[0])


@pytest.mark.parametrize("count", (3, 30, 64, 70))
def test_windows_hold_what_would_come_without(count):
    """More than a window, as many, less, and an example several times in one of them."""
    examples = make_examples(count)
    plain = order(examples, config(), SORTED, SORTED + 5 * WINDOW)
    sorted_by_length = order(examples, config(BOUNDARIES), SORTED, SORTED + 5 * WINDOW)
    for start in range(0, 5 * WINDOW, WINDOW):
        window = slice(start, start + WINDOW)
        same = [collections.Counter(each[window].ravel()) for each in (plain, sorted_by_length)]
        assert same[0] == same[1]
        # In a window no two batches interleave their boundaries, and they are not in their order.
        lengths = examples.lengths[sorted_by_length[window]]  # [W, G]
        buckets = np.searchsorted(BOUNDARIES, lengths)
        ranges = sorted((batch.min(), batch.max()) for batch in buckets)
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(ranges))
        if count > WINDOW:
            assert [batch.max() for batch in lengths] != sorted(batch.max() for batch in lengths)


@pytest.mark.parametrize("begins", ((0, 0), (500, 77)))
def test_the_first_batches_come_as_they_were_drawn(begins):
    """Counted from where the order begins."""
    examples, step = make_examples(1000), begins[0]
    plain, by_length = (
        [batch_indices(examples.lengths, config(b), i, begins) for i in range(step, step + 112)]
        for b in ((32,), BOUNDARIES)
    )
    same = [(one == other).all() for one, other in zip(plain, by_length, strict=True)]
    assert UNSORTED_WINDOWS == 6 and same[:96] == [True] * 96 and sum(same[96:]) < 4


def test_what_fits_one_boundary_is_mixed():
    """Sorted by exact lengths the batches would be no shorter, but all alike."""
    examples = make_examples(1000)
    windows = order(examples, config(BOUNDARIES), SORTED, SORTED + WINDOW)
    buckets = np.searchsorted(BOUNDARIES, examples.lengths[windows])  # [W, G]
    alike = [batch for batch, of in zip(windows, buckets, strict=True) if len(set(of)) == 1]
    inside = np.mean([examples.lengths[batch].std() for batch in alike])
    number = np.searchsorted(BOUNDARIES, examples.lengths)
    whole = np.mean([examples.lengths[number == n].std() for n in range(len(BOUNDARIES))])
    assert len(alike) > WINDOW / 2 and inside > 0.7 * whole


@pytest.mark.parametrize("boundaries", ((32,), BOUNDARIES))
def test_the_order_follows_the_seed(boundaries):
    examples = make_examples(40)
    one, same, other = (
        order(examples, config(boundaries, seed=s), SORTED - 9, SORTED + 20) for s in (0, 0, 1)
    )
    assert (one == same).all() and (one != other).any()


@pytest.mark.parametrize("boundaries", ((32,), BOUNDARIES))
@pytest.mark.parametrize("count, replicas", ((1, 1), (1, 2), (2, 2), (2, 4)))
def test_workers_share_the_global_batch_from_any_step(boundaries, count, replicas):
    examples, start, chosen = make_examples(30), SORTED + 13, config(boundaries)
    found = list(read(examples, chosen, start, 5, count, replicas))
    assert len(found) == 5
    for number, (batch, bucket) in enumerate(found, start):
        numbers = batch_indices(examples.lengths, chosen, number)
        expected = examples.make_batch(numbers, 32)
        assert set(batch) == set(expected)
        for name, values in expected.items():
            assert batch[name].dtype == values.dtype
            np.testing.assert_array_equal(batch[name], values, err_msg=name)
        # The shortest boundary that holds the longest example of the global batch.
        longest = examples.lengths[numbers].max()
        assert bucket == np.searchsorted(boundaries, longest)
        assert examples.names(chosen, number) == [f"example {i}" for i in batch["label_ids"]]


def test_a_strategy_hands_every_device_its_part():
    examples, chosen = make_examples(30), config(BOUNDARIES)
    for strategy, devices in ((tf.distribute.get_strategy(), 1), (two_devices(), 2)):
        batches = iter(examples.batches(strategy, chosen, SORTED + 9))
        for step in range(SORTED + 9, SORTED + 12):
            parts = strategy.experimental_local_results(next(batches)["label_ids"])
            assert len(parts) == devices
            expected = batch_indices(examples.lengths, chosen, step)
            assert np.concatenate(parts).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "lengths, longest, expected",
    (
        ([5] * 100, 128, (8,)),
        ([9], 128, (16,)),
        ([3, 100], 128, (8, 104)),
        ([3, 20, 127], 127, (8, 24, 127)),  # no longer than --max_seq_length
        ([3] * 10 + [200] * 10, 128, (8, 128)),  # what is longer will be cut
        # What the longest batch of the window holds is its own length.
        ([4] * 99 + [90], 128, (8, 96)),
    ),
)
def test_lengths_by_hand(lengths, longest, expected):
    assert tuple(choose_boundaries(np.array(lengths), longest)) == expected


def test_the_more_a_length_costs_the_fewer_there_are():
    """And those are the best ones of so many, multiples of eight: by trying all that there are."""
    lengths = np.random.default_rng(0).integers(1, 121, 1000)
    found = [choose_boundaries(lengths, 128, cost) for cost in (0, 2, 5, 20, 50, 1e9)]
    counts = [len(each) for each in found]
    assert counts == sorted(counts, reverse=True) and len(set(counts)) >= 4
    assert (counts[0], counts[-1]) == (MAX_LENGTHS, 1) == (7, 1)
    # The longest example of each batch of a window, as the sorted examples have them.
    needed = np.sort(lengths)[np.ceil(np.arange(1, WINDOW + 1) * 1000 / WINDOW).astype(int) - 1]

    def padded(boundaries):
        return sum(min(b for b in boundaries if b >= length) for length in needed) / WINDOW

    others = range(LENGTH_STEP, 120, LENGTH_STEP)
    best = min(padded((*each, 120)) for each in itertools.combinations(others, 6))
    assert padded(found[0]) == best and set(found[0]) <= {*others, 120}
    cost, pair = min((padded((other, 120)) + 2 * 20, (other, 120)) for other in others)
    assert cost < 120 + 20 and found[3] == pair


@pytest.mark.parametrize(
    "hidden_size, device, steps, expected",
    (
        (128, "CPU", 6, {1}),  # a trial
        (128, "CPU", 937, {2, 3}),  # 10,000 film reviews, three times
        (768, "CPU", 343, {5, 6, 7}),  # MRPC: an hour of computing
        (768, "GPU", 343, {1}),  # and a minute
        (768, "GPU", 14_000, {3, 4, 5}),
    ),
)
def test_as_many_lengths_as_pay(hidden_size, device, steps, expected):
    lengths = np.minimum(3 + np.random.default_rng(0).exponential(25, 5000).astype(int), 128)
    cost = compilation_cost_in_positions(hidden_size, 32, device) / steps
    assert len(choose_boundaries(lengths, 128, cost)) in expected
