"""Batches encoded examples for training, in an order that depends only on seed and step.

A run can therefore be resumed at any step, on any number of devices: a global batch is cut into
equal consecutive parts, one for each replica. Examples of about equal length share a batch.

Shapes: N examples, G examples of a global batch, R replicas of a worker, B examples of a replica,
W batches of a window, T tokens.
"""

import dataclasses
import functools
import hashlib
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from bert_common.progress import progress
from bert_tf.input.data_order import continue_order
from bert_tf.input.length_buckets import BUCKET, WINDOW
from bert_tf.input.pipeline import set_options
from finetuning.inputs import Batch
from finetuning.shares import Sources

if TYPE_CHECKING:
    from bert_tf.training.loop import TrainingConfig
    from bert_tf.training.state import TrainingState

# A model's outputs for examples: the name of an output -> one array per example, in order.
Outputs = dict[str, list[np.ndarray]]

# The lengths of batches are multiples of this.
LENGTH_STEP = 8

# Each length is compiled separately; more lengths save little padding.
MAX_LENGTHS = 7

# The first windows of a run keep the order in which they were drawn. Batches of one length hold
# similar examples, which disturbs the first updates: one of five seeds learned late with them
# (docs/benchmarks.md, "Fine-tuning").
UNSORTED_WINDOWS = 6


@dataclasses.dataclass(frozen=True, eq=False)
class Examples:
    """The encoded examples of a split, in memory."""

    lengths: np.ndarray  # the number of tokens in each example, [N]
    # (indices of examples [B], T) -> a dict of arrays [B, ...], one of them "input_mask". Arrays in
    # `bert_tf.input.length_buckets.POSITION_FEATURES` have one entry per token, padded to T.
    make_batch: Callable[[np.ndarray, int], Batch]
    ids: list[str]  # the name of each example, [N]
    raw: Sequence[Any] = ()  # the examples of the split before they were encoded, as they were read
    # How `raw` was cut into windows, which only the task reads; None if each raw example is encoded
    # as one example.
    windowing: Any = None
    # The number of examples in an epoch, if the N examples are windows; None: N.
    epoch_size: int | None = None
    # The step and the position at which the `DataOrder` of these examples begins.
    order_start: tuple[int, int] = (0, 0)
    # The sources of the examples, if each batch is drawn from one of several sources.
    sources: Sources | None = None

    @property
    def count(self) -> int:
        """The number of examples in an epoch, which turns --num_train_epochs into updates."""
        return len(self.lengths) if self.epoch_size is None else self.epoch_size

    def in_order(self, state: "TrainingState", config: "TrainingConfig") -> "Examples":
        """Returns these examples in the order of a run that starts or resumes from a checkpoint.

        The order is stored in `state`, which has been restored.
        """
        lengths = hashlib.sha256(self.lengths.astype("<i8").tobytes())
        if self.sources is not None:
            lengths.update(self.sources.numbers.astype("<i8").tobytes())
            lengths.update(np.array(self.sources.shares, "<f8").tobytes())
        data = int(lengths.hexdigest()[:12], 16)
        order_start = continue_order(state, config, len(self.lengths), data)
        return dataclasses.replace(self, order_start=order_start)

    def batches(
        self, strategy: tf.distribute.Strategy, config: "TrainingConfig", start_step: int
    ) -> tf.distribute.DistributedDataset:
        """Returns the distributed batches from `start_step` on; each replica gets its own part.

        All batches are padded to the configuration's largest bucket; at least one bucket is
        required.
        """
        # Each batch carries the number of its boundary, to which the training step cuts it.
        longest = config.bucket_boundaries[-1]
        sample = self.make_batch(np.zeros(1, np.int64), longest)
        names = sorted(sample)

        def worker(context):
            size = context.get_per_replica_batch_size(config.train_batch_size)
            parts = (context.num_input_pipelines, -1, size)

            def draw(step):
                indices = self.indices(config, int(step))  # [G]
                bucket = np.searchsorted(config.bucket_boundaries, self.lengths[indices].max())
                local = indices.reshape(parts)[context.input_pipeline_id]  # [R, B]
                batch = self.make_batch(local.reshape(-1), longest)  # [R * B, ...]
                values = [
                    batch[name].reshape(*local.shape, *batch[name].shape[1:])  # [R, B, ...]
                    for name in names
                ]
                return *values, np.full(len(local), bucket, np.int32)

            def load(step):
                types = [*(sample[name].dtype for name in names), np.int32]
                *values, bucket = tf.numpy_function(draw, [step], types)
                batch = {
                    name: tf.ensure_shape(value, [None, size, *sample[name].shape[1:]])
                    for name, value in zip(names, values, strict=True)
                }
                return {**batch, BUCKET: tf.ensure_shape(bucket, [None])}

            steps = tf.data.Dataset.counter(start=start_step)
            batches = steps.map(load, num_parallel_calls=2, deterministic=True).unbatch()
            return set_options(batches.prefetch(tf.data.AUTOTUNE)).apply(
                tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
            )

        return strategy.distribute_datasets_from_function(worker)

    def names(self, config: "TrainingConfig", step: int) -> list[str]:
        """Returns the names of the examples in the batch that follows `step` batches."""
        return [self.ids[i] for i in self.indices(config, step)]

    def indices(self, config: "TrainingConfig", step: int) -> np.ndarray:
        """Returns the indices of the examples in the global batch that follows `step` batches, [G].

        Each of several sources has its own order, which counts only the batches of this source. An
        order that begins in the middle of a run begins in each source at about the source's share
        of the position.
        """
        if self.sources is None:
            return batch_indices(self.lengths, config, step, self.order_start)
        first_step, first = self.order_start
        source, number = self.sources.place(config.seed, step - first_step)
        members = self.sources.members[source]
        start = 0, int(first * self.sources.shares[source])
        return members[batch_indices(self.lengths[members], config, number, start)]

    def outputs(
        self, run: Callable[[np.ndarray, int], Batch], batch_size: int, shown: bool = True
    ) -> Outputs:
        """Returns a model's outputs for all examples, at least one, batch by batch.

        Args:
            run: (indices of at most `batch_size` examples [B], the length of the longest) -> the
                model's outputs for them, name -> an array [B or more, ...].
            shown: whether the progress is shown.
        """
        # The longest first, so that running out of memory shows at once.
        order = np.argsort(-self.lengths, kind="stable")
        found: list[Batch] = [{}] * len(order)
        with progress("predicting", len(order), "examples", shown=shown) as bar:
            for start in range(0, len(order), batch_size):
                indices = order[start : start + batch_size]
                batch = run(indices, int(self.lengths[indices[0]]))
                for place, index in enumerate(indices):
                    found[index] = {name: values[place] for name, values in batch.items()}
                bar.update(len(indices))
        return {name: [each[name] for each in found] for name in found[0]}

    def explain_failure(self) -> None:
        """Returns None, because examples in memory were checked when they were read."""


def batch_indices(
    lengths: np.ndarray, config: "TrainingConfig", step: int, order_start: tuple[int, int] = (0, 0)
) -> np.ndarray:
    """Chooses the examples of the global batch that follows `step` batches: [G] integers below N.

    A window is a run of consecutive batches of the shuffled order. Its examples, of `lengths` [N],
    are sorted by the boundary that each fits into, and cut into batches, which are then shuffled.
    The first `UNSORTED_WINDOWS` windows keep the shuffled order. `order_start` is the step and the
    position of the order's first batch; see `bert_tf.input.data_order.DataOrder`.
    """
    size, (first_step, first) = config.train_batch_size, order_start
    drawn = step - first_step
    window, batch = divmod(drawn, WINDOW)
    if len(config.bucket_boundaries) == 1 or window < UNSORTED_WINDOWS:
        return _shuffled_slice(len(lengths), config.seed, first + drawn * size, size)
    start = first + window * WINDOW * size
    indices = _shuffled_slice(len(lengths), config.seed, start, WINDOW * size)  # [W * G]
    buckets = np.searchsorted(config.bucket_boundaries, lengths[indices])  # [W * G]
    batches = indices[np.argsort(buckets, kind="stable")].reshape(WINDOW, size)  # [W, G]
    return batches[np.random.default_rng([config.seed, 1, window]).permutation(WINDOW)[batch]]


def _shuffled_slice(examples, seed, position, count):
    """Returns `count` indices of the endless shuffled order, from `position` on."""
    parts = []
    while count:
        epoch, first = divmod(position, examples)
        part = _permutation(examples, seed, epoch)[first : first + count]
        parts.append(part)
        position, count = position + len(part), count - len(part)
    return np.concatenate(parts)


@functools.lru_cache(maxsize=2)
def _permutation(examples, seed, epoch):
    return np.random.default_rng([seed, 0, epoch]).permutation(examples)


def choose_boundaries(
    lengths: np.ndarray | Sequence[int], longest: int, compilation_cost: float = 0.0
) -> tuple[int, ...]:
    """Chooses the lengths of batches; more lengths mean less padding but more compilation.

    Args:
        lengths: the lengths of the examples, [N].
        longest: the upper limit of the last boundary.
        compilation_cost: the cost of one more length, as the number of positions by which every
            batch could be longer at the same cost; see
            `bert_tf.input.length_buckets.compilation_cost_in_positions`.

    Returns:
        At most `MAX_LENGTHS` ascending multiples of `LENGTH_STEP` (the last one may be
        `longest`).
    """
    # The longest example of each batch in a window of sorted examples, if all windows were alike.
    shares = np.arange(1, WINDOW + 1) / WINDOW  # [W]
    needed = np.quantile(lengths, shares, method="inverted_cdf")
    needed = np.minimum(-(-needed // LENGTH_STEP) * LENGTH_STEP, longest).astype(int)  # [W]
    values, counts = np.unique(needed, return_counts=True)
    batches = np.concatenate([[0], np.cumsum(counts)])
    # The number of `values` covered -> the lowest cost in positions and the boundaries with it.
    plans: dict[int, tuple[float, tuple[int, ...]]] = {0: (0, ())}
    for _ in range(MAX_LENGTHS):
        extended = dict(plans)
        for covered, (cost, chosen) in plans.items():
            for last in range(covered, len(values)):
                length = int(values[last])
                padded = length * int(batches[last + 1] - batches[covered])
                plan = cost + padded + WINDOW * compilation_cost, (*chosen, length)
                extended[last + 1] = min(extended.get(last + 1, (math.inf, ())), plan)
        plans = extended
    return plans[len(values)][1]
