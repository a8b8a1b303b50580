"""What functions that run on every replica share: graphs, sums, the parts of distributed values."""

import functools
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

# Without AutoGraph, which would rewrite the model's Python for seconds at every start: there is no
# control flow here for it to convert.
graph = functools.partial(tf.function, autograph=False)


def all_reduce(context: tf.distribute.ReplicaContext, values: Any) -> Any:
    """Adds up a structure of tensors over all replicas, all tensors of a type at once."""
    flat = tf.nest.flatten(values)
    for dtype in dict.fromkeys(tensor.dtype for tensor in flat):
        places = [i for i, tensor in enumerate(flat) if tensor.dtype == dtype]
        totals = context.all_reduce(tf.distribute.ReduceOp.SUM, [flat[i] for i in places])
        for i, total in zip(places, totals, strict=True):
            flat[i] = total
    return tf.nest.pack_sequence_as(values, flat)


def local_values(strategy: tf.distribute.Strategy, value: Any) -> tuple[Any, ...]:
    """The values of this worker's replicas in a distributed value, as a tuple."""
    return strategy.experimental_local_results(value)


def by_device(strategy: tf.distribute.Strategy, values: Any) -> Iterator[Any]:
    """A structure of distributed values -> the same of each of this worker's devices."""
    local = [local_values(strategy, value) for value in tf.nest.flatten(values)]
    for flat in zip(*local, strict=True):
        yield tf.nest.pack_sequence_as(values, list(flat))


def feature_specs(
    strategy: tf.distribute.Strategy, spec: Mapping[str, tf.TypeSpec]
) -> dict[str, tf.TensorSpec]:
    """Describes what a replica gets of a distributed batch, from its dataset's `element_spec`."""
    specs = {}

    def record(batch):
        specs.update({name: tf.TensorSpec.from_tensor(value) for name, value in batch.items()})

    graph(lambda batch: strategy.run(record, args=(batch,))).get_concrete_function(spec)
    return specs


def zeros(specs: Mapping[str, tf.TensorSpec], rows: int) -> dict[str, tf.Tensor]:
    """A batch of zeros, for a function to be compiled as it will be called.

    `rows` is a number that the specs of a finite dataset do not have.
    """
    return {
        name: tf.compat.v1.placeholder_with_default(
            tf.zeros([rows, *spec.shape[1:]], spec.dtype), spec.shape
        )
        for name, spec in specs.items()
    }
