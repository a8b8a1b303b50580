"""Encoded examples as what a model is trained on, batches of about equal length together.

The order is a function of seed and step alone, so that a run goes on anywhere, on any number of
devices: a global batch is cut into equal consecutive parts, one for every replica.

Legend: N examples, G examples of a global batch, R replicas of a worker, B examples of a replica,
W batches of a window.
"""

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert_tf.input.data_order import number_of_boundaries, take_over_order
from bert_tf.input.length_buckets import BUCKET, WINDOW

# Lengths of batches are multiples of it.
LENGTH_STEP = 8

# A training step is compiled for each length; more lengths save little padding.
MOST_LENGTHS = 7

# The first windows of a run come as they were drawn. Batches of one length, each of much the same
# kind of example, disturb the first updates: one of five seeds learned late with them
# (README.md, "What was measured, on what").
UNSORTED_WINDOWS = 6


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """The examples of a split, in memory.

    Attributes:
        lengths: the pieces of each, [N].
        make_batch: (numbers of examples [B], length) -> a dict of arrays [B, ...], of which those
            with a number for each piece have that length.
        ids: what each example is called, [N].
        read: the examples of the split, as they were read.
        cut: how they became these ones, where one of them may become several; else None.
        counted: how many a pass over them is counted as; None: as many as there are.
        begins: the step and the position at which their `DataOrder` begins.
    """

    lengths: np.ndarray
    make_batch: Callable
    ids: list
    read: list = ()
    cut: object = None
    counted: int | None = None
    begins: tuple = (0, 0)

    @property
    def count(self):
        """How many examples a pass is: with --num_train_epochs it says how many updates."""
        return len(self.lengths) if self.counted is None else self.counted

    def in_order(self, state, config):
        """These examples in the order of a run that begins, or goes on from a checkpoint.

        Args:
            state: the restored `TrainingState`; it takes the order over.
            config: the `TrainingConfig`.

        Returns:
            `Examples`.
        """
        lengths = hashlib.sha256(self.lengths.astype("<i8").tobytes())
        begins = take_over_order(
            state,
            config.train_batch_size,
            config.seed,
            len(self.lengths),
            number_of_boundaries(config.bucket_boundaries),
            int(lengths.hexdigest()[:12], 16),
        )
        return dataclasses.replace(self, begins=begins)

    def batches(self, strategy, config, start_step):
        """The batches of a `TrainingConfig` from a step on, to every replica its own.

        `config.bucket_boundaries` is never empty: its last number is the length of batches.
        """
        # The number of the batch's boundary travels with it, the step cuts the batch.
        longest = config.bucket_boundaries[-1]
        one = self.make_batch(np.zeros(1, np.int64), longest)
        names = sorted(one)

        def worker(context):
            size = context.get_per_replica_batch_size(config.train_batch_size)
            parts = (context.num_input_pipelines, -1, size)

            def draw(step):
                numbers = numbers_of_batch(self.lengths, config, int(step), self.begins)  # [G]
                bucket = np.searchsorted(config.bucket_boundaries, self.lengths[numbers].max())
                own = numbers.reshape(parts)[context.input_pipeline_id]  # [R, B]
                batch = self.make_batch(own.reshape(-1), longest)
                values = [batch[name].reshape(*own.shape, *batch[name].shape[1:]) for name in names]
                return *values, np.full(len(own), bucket, np.int32)

            def read(step):
                types = [*(one[name].dtype for name in names), np.int32]
                *values, bucket = tf.numpy_function(draw, [step], types)
                values = [
                    tf.ensure_shape(value, [None, size, *one[name].shape[1:]])
                    for name, value in zip(names, values, strict=True)
                ]
                batch = dict(zip(names, values, strict=True))
                return {**batch, BUCKET: tf.ensure_shape(bucket, [None])}

            steps = tf.data.Dataset.counter(start=start_step)
            own = steps.map(read, num_parallel_calls=2, deterministic=True).unbatch()
            return own.prefetch(tf.data.AUTOTUNE).apply(
                tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
            )

        return strategy.distribute_datasets_from_function(worker)

    def names(self, config, step):
        """The names of the examples of the batch that follows `step` batches."""
        return [self.ids[i] for i in numbers_of_batch(self.lengths, config, step, self.begins)]

    def explain_failure(self):
        """None: examples in memory were checked when they were read."""


def numbers_of_batch(lengths, config, step, begins=(0, 0)):
    """Which examples are in the global batch that follows `step` batches.

    The examples of a window, batches that follow one another in the shuffled order, are shared
    out by the boundary that each fits; then the window's batches are shuffled. The first
    `UNSORTED_WINDOWS` are left as they were drawn.

    Args:
        lengths: [N].
        config: a `TrainingConfig`.
        step: a number.
        begins: step and position of the order's first batch, see `bert_tf.input.data_order`.

    Returns:
        [G] integers below N.
    """
    size, (first_step, first) = config.train_batch_size, begins
    made = step - first_step
    window, number = divmod(made, WINDOW)
    if len(config.bucket_boundaries) == 1 or window < UNSORTED_WINDOWS:
        return _take(len(lengths), config.seed, first + made * size, size)
    start = first + window * WINDOW * size
    chosen = _take(len(lengths), config.seed, start, WINDOW * size)  # [W * G]
    buckets = np.searchsorted(config.bucket_boundaries, lengths[chosen])
    batches = chosen[np.argsort(buckets, kind="stable")].reshape(WINDOW, size)  # [W, G]
    return batches[np.random.default_rng([config.seed, 1, window]).permutation(WINDOW)[number]]


def _take(examples, seed, position, count):
    """Numbers of examples from a position of the endless shuffled order on, [count]."""
    parts = []
    while count:
        epoch, first = divmod(position, examples)
        part = _shuffled(examples, seed, epoch)[first : first + count]
        parts.append(part)
        position, count = position + len(part), count - len(part)
    return np.concatenate(parts)


@functools.lru_cache(maxsize=2)
def _shuffled(examples, seed, epoch):
    return np.random.default_rng([seed, 0, epoch]).permutation(examples)


def choose_boundaries(lengths, longest, price=0.0):
    """Lengths for batches: the more of them, the less is padded and the more is compiled.

    Args:
        lengths: of the examples, [N].
        longest: what the last boundary is at most.
        price: what another length costs, as positions by which every batch could be longer
            instead; see `bert_tf.input.length_buckets.compiling_positions`.

    Returns:
        At most `MOST_LENGTHS` ascending multiples of `LENGTH_STEP` (the last one may be
        `longest`).
    """
    # The longest example of each batch of a window, as a large window would have them.
    shares = np.arange(1, WINDOW + 1) / WINDOW
    needed = np.quantile(lengths, shares, method="inverted_cdf")
    needed = np.minimum(-(-needed // LENGTH_STEP) * LENGTH_STEP, longest).astype(int)  # [W]
    values, counts = np.unique(needed, return_counts=True)
    batches = np.concatenate([[0], np.cumsum(counts)])
    # How many of `values` are covered -> the least cost in positions, with the boundaries.
    plans = {0: (0, ())}
    for _ in range(MOST_LENGTHS):
        more = dict(plans)
        for covered, (cost, chosen) in plans.items():
            for last in range(covered, len(values)):
                length = int(values[last])
                padded = length * int(batches[last + 1] - batches[covered])
                plan = cost + padded + WINDOW * price, (*chosen, length)
                more[last + 1] = min(more.get(last + 1, (math.inf, ())), plan)
        plans = more
    return plans[len(values)][1]
