"""Batches from several sources: how often each comes, and in which order its examples do."""

import collections
import dataclasses

import numpy as np
import pytest

from finetuning.examples import batch_indices
from finetuning.shares import BLOCK, Sources
from tests.support.tiny_models import make_examples, training_config

SIZES, SHARES = (40, 10, 25), (0.5, 0.2, 0.3)


def make(shares=SHARES):
    """Examples of three sources, which are mixed."""
    numbers = np.random.default_rng(0).permutation(np.repeat(np.arange(3), SIZES))
    examples = make_examples(sum(SIZES))
    return dataclasses.replace(examples, sources=Sources(numbers, shares))


def config(boundaries=(32,), seed=1):
    return training_config(size=4, bucket_boundaries=boundaries, seed=seed)


@pytest.mark.parametrize("seed", [1, 2])
def test_sources_come_by_their_shares(seed):
    """In 4,000 batches within five standard deviations of what independent draws give.

    A place counts the batches of its source.
    """
    sources, count, seen = make().sources, 4000, collections.Counter()
    for batch in range(count):
        place = sources.place(seed, batch)
        assert place.number == seen[place.source]
        seen[place.source] += 1
    for source, share in enumerate(SHARES):
        deviation = np.sqrt(count * share * (1 - share))
        assert abs(seen[source] - count * share) < 5 * deviation


@pytest.mark.parametrize("boundaries", [(32,), (8, 16, 24, 32)])
def test_each_source_has_the_order_that_it_has_alone(boundaries):
    examples, seen = make(), collections.Counter()
    for step in range(400):
        found = examples.indices(config(boundaries), step)
        (source,) = set(examples.sources.numbers[found])
        own = examples.sources.members[source]
        alone = batch_indices(examples.lengths[own], config(boundaries), seen[source])
        np.testing.assert_array_equal(found, own[alone])
        seen[source] += 1
    assert len(seen) == 3


def test_every_seed_and_every_block_is_drawn_anew():
    """From a stream of its own: what orders the examples of an epoch draws other numbers."""
    sources = make().sources
    drawn = [
        tuple(sources.place(seed, start + batch).source for batch in range(99))
        for seed, start in ((1, 0), (1, 0), (2, 0), (1, BLOCK))
    ]
    order = np.random.default_rng([1, 0, 0]).choice(3, BLOCK, p=SHARES)[:99].tolist()
    assert drawn[0] == drawn[1] and len({*drawn, tuple(order)}) == 4


def test_an_order_that_begins_later_goes_on_in_each_source():
    """What was seen of each is about its share of the position, so it does not begin anew."""
    examples = dataclasses.replace(make(), order_start=(6, 60))
    chosen = config()
    for step in range(6, 30):
        source, number = examples.sources.place(chosen.seed, step - 6)
        own = examples.sources.members[source]
        start = 0, int(60 * SHARES[source])
        expected = own[batch_indices(examples.lengths[own], chosen, number, start)]
        np.testing.assert_array_equal(examples.indices(chosen, step), expected)
