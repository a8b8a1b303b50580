"""Computes and writes histograms of a model's weights and gradients for each layer.

Shapes: G groups of weights, K numbers of a histogram: the smallest and the largest value, then the
counts of `BUCKETS` intervals of equal width between them.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorboard.plugins.histogram import metadata

# As in tf.summary.histogram.
BUCKETS = 30

# The prefixes of the tags, in the order of the arrays' first axis.
KINDS = ("weights", "gradients")

# The minimum width of all intervals together, for groups of equal values.
SMALLEST_WIDTH = 1e-12


def layer_groups(variables: Sequence[Any]) -> dict[str, list[int]]:
    """Returns a dict layer name -> indices of the layer's matrices among the variables.

    Biases and layer norms are left out, as their weights are few and around different values.
    Layers of a second network, such as ELECTRA's generator, have the network's name as a prefix.
    """
    groups: dict[str, list[int]] = {}
    networks: dict[str, str] = {}  # layer -> the first network that has it
    for index, variable in enumerate(variables):
        network, layer = variable.path.split("/")[:2]
        if len(variable.shape) > 1:
            own = networks.setdefault(layer, network) == network
            groups.setdefault(layer if own else f"{network}_{layer}", []).append(index)
    return groups


def histogram(values: tf.Tensor) -> tf.Tensor:
    """Computes the histogram, [K] float32, of any tensor; non-finite values count as 0."""
    values = tf.cast(tf.reshape(values, [-1]), tf.float32)
    values = tf.where(tf.math.is_finite(values), values, 0.0)
    least, most = tf.reduce_min(values), tf.reduce_max(values)
    most = tf.maximum(most, least + tf.maximum(SMALLEST_WIDTH, 1e-6 * tf.abs(least)))
    counts = tf.histogram_fixed_width(values, [least, most], BUCKETS)
    return tf.concat([[least, most], tf.cast(counts, tf.float32)], axis=0)


def histograms(
    weights: Sequence[tf.Tensor],
    gradients: Mapping[int, tf.Tensor],
    groups: Mapping[str, Sequence[int]],
    due: tf.Tensor,
) -> tf.Tensor:
    """Computes all groups' histograms, float32 [2, G, K] in the order of `KINDS`, if they are due.

    They are 0 if not due, or for groups without a gradient. `weights` has a tensor per variable,
    `gradients` maps the indices of variables that have a gradient to it.
    """

    def compute():
        nothing = tf.zeros([BUCKETS + 2])
        rows = []
        for tensors in (dict(enumerate(weights)), gradients):
            for indices in groups.values():
                parts = [tf.reshape(tensors[i], [-1]) for i in indices if i in tensors]
                rows.append(histogram(tf.concat(parts, axis=0)) if parts else nothing)
        return tf.reshape(tf.stack(rows), shape)

    shape = [len(KINDS), len(groups), BUCKETS + 2]
    return tf.cond(due, compute, lambda: tf.zeros(shape))


def write_histograms(
    writer: tf.summary.SummaryWriter, names: Collection[str], values: Any, step: int
) -> None:
    """Writes histograms [2, G, K] for TensorBoard, except those without values."""
    shown = metadata.create_summary_metadata(display_name=None, description=None)
    with writer.as_default(step=step):
        for kind, rows in zip(KINDS, np.asarray(values, np.float64), strict=True):
            for name, row in zip(names, rows, strict=True):
                if not row[2:].sum():
                    continue
                edges = np.linspace(row[0], row[1], BUCKETS + 1)
                buckets = np.stack([edges[:-1], edges[1:], row[2:]], axis=1)  # [BUCKETS, 3]
                tf.summary.write(f"{kind}/{name}", buckets, metadata=shown)
    writer.flush()
