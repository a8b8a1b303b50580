"""Helpers for functions that run on every replica."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

# AutoGraph is off because it would spend seconds at every start on rewriting the model's Python,
# which has no control flow to convert.
graph = functools.partial(tf.function, autograph=False)


def all_reduce(context: tf.distribute.ReplicaContext, values: Any) -> Any:
    """Sums a structure of tensors over all replicas, with one reduction per dtype."""
    flat = tf.nest.flatten(values)
    for dtype in dict.fromkeys(tensor.dtype for tensor in flat):
        places = [i for i, tensor in enumerate(flat) if tensor.dtype == dtype]
        totals = context.all_reduce(tf.distribute.ReduceOp.SUM, [flat[i] for i in places])
        for i, total in zip(places, totals, strict=True):
            flat[i] = total
    return tf.nest.pack_sequence_as(values, flat)


def local_values(strategy: tf.distribute.Strategy, value: Any) -> tuple[Any, ...]:
    """Returns the values of this worker's replicas in a distributed value."""
    return strategy.experimental_local_results(value)


def by_device(strategy: tf.distribute.Strategy, values: Any) -> Iterator[Any]:
    """Yields, for each of this worker's devices, its part of a structure of distributed values."""
    local = [local_values(strategy, value) for value in tf.nest.flatten(values)]
    for flat in zip(*local, strict=True):
        yield tf.nest.pack_sequence_as(values, list(flat))


def feature_specs(
    strategy: tf.distribute.Strategy, spec: Mapping[str, tf.TypeSpec]
) -> dict[str, tf.TensorSpec]:
    """Returns the per-replica specs of a distributed dataset's `element_spec`."""
    specs = {}

    def record(batch):
        specs.update({name: tf.TensorSpec.from_tensor(value) for name, value in batch.items()})

    graph(lambda batch: strategy.run(record, args=(batch,))).get_concrete_function(spec)
    return specs


def zeros(specs: Mapping[str, tf.TensorSpec], rows: int) -> dict[str, tf.Tensor]:
    """Creates a batch of zeros, with which to compile a function for its later calls.

    `rows` is the batch size, which the specs of a finite dataset lack.
    """
    return {
        name: tf.compat.v1.placeholder_with_default(
            tf.zeros([rows, *spec.shape[1:]], spec.dtype), spec.shape
        )
        for name, spec in specs.items()
    }
