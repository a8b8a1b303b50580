"""Histograms of weights and gradients by layer: equal to NumPy's, shown by TensorBoard, off."""

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.summaries.histograms import BUCKETS, KINDS, histogram, layer_groups
from bert_tf.training.loop import steps_until_stop
from tests.support.crosses import slow
from tests.support.programs import PretrainingJob, events_of
from tests.support.reporters import make_reporter
from tests.support.tiny_models import (
    gradients_of,
    make_step,
    random_batch,
    split_batch,
    strategy_of,
    tensors,
    training_config,
)

LAYERS = ["embeddings", "layer_0", "layer_1", "pooler", "masked_lm", "next_sentence"]


def assert_same(found, arrays):
    """The smallest and the largest value, then the counts between them."""
    values = np.concatenate([array.ravel() for array in arrays]).astype(np.float32)
    counts, edges = np.histogram(values, BUCKETS)
    np.testing.assert_allclose(found[:2], edges[[0, -1]], rtol=1e-4)
    assert found[2:].sum() == counts.sum()
    # A value at an edge may be rounded to the other side.
    np.testing.assert_allclose(found[2:], counts, atol=0.002 * counts.sum())


def test_one_histogram():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 25)).astype(np.float32)
    assert_same(histogram(values).numpy(), [values])
    values[0, 0], values[0, 1] = np.nan, np.inf
    assert histogram(values).numpy()[2:].sum() == 1000
    assert histogram(np.zeros(7)).numpy()[2:].tolist() == [7, *[0] * (BUCKETS - 1)]


@pytest.mark.parametrize("devices", (1, slow(2)))
def test_a_step_s_histograms_are_numpy_s(devices):
    """Of the whole batch's gradient, before clipping, and of the weights that it changes."""
    strategy = strategy_of(devices)
    batch = random_batch(1)
    step = make_step(histogram_steps=2, strategy=strategy)
    alone = make_step(histogram_steps=2) if devices == 2 else step
    groups = layer_groups(step.weights)
    assert list(groups) == LAYERS

    def run(which):
        return which(split_batch(batch, strategy) if which is step else tensors(batch))

    assert not run(step)["histograms"].numpy().any()  # not due in the first step
    if devices == 2:
        run(alone)
    _, gradients = gradients_of(alone, batch)
    weights = [v.value.numpy() for v in alone.weights]
    found = run(step)["histograms"].numpy()
    assert found.shape == (2, len(LAYERS), BUCKETS + 2)
    by_path = [gradients[v.path] for v in alone.weights]
    for kind, arrays in zip(KINDS, (weights, by_path), strict=True):
        for name, row in zip(groups, found[KINDS.index(kind)], strict=True):
            chosen = [arrays[i] for i in groups[name]]
            assert all(array.ndim > 1 for array in chosen)
            assert_same(row, chosen)


def test_off_by_default():
    step = make_step()
    assert step.groups == {} and "histograms" not in step(tensors(random_batch(0)))


def test_the_loop_stops_where_they_are_due():
    config = training_config(histogram_steps=7, steps_per_loop=10, save_summary_steps=100)
    assert steps_until_stop(5, config, 0.001) == 2
    assert steps_until_stop(7, config, 0.001) == 7


def test_what_tensorboard_shows(tmp_path):
    values = np.zeros((2, 2, BUCKETS + 2), np.float32)
    values[:, 0, :2] = [[-1, 2], [0, 0.5]]
    values[:, 0, 2:] = np.arange(BUCKETS)
    with make_reporter(tmp_path) as reporter:
        reporter.histograms(["layer_0", "frozen"], tf.constant(values), 4)
    events = events_of(tmp_path)
    assert sorted(events.Tags()["tensors"]) == ["gradients/layer_0", "weights/layer_0"]
    for kind, least, most in (("weights", -1, 2), ("gradients", 0, 0.5)):
        name = f"{kind}/layer_0"
        assert events.SummaryMetadata(name).plugin_data.plugin_name == "histograms"
        (event,) = events.Tensors(name)
        buckets = tf.make_ndarray(event.tensor_proto)
        assert event.step == 4 and buckets.shape == (BUCKETS, 3)
        np.testing.assert_allclose(buckets[[0, -1], [0, 1]], [least, most], atol=1e-6)
        np.testing.assert_allclose(buckets[1:, 0], buckets[:-1, 1])
        assert buckets[:, 2].tolist() == list(range(BUCKETS))


@pytest.mark.slow
def test_the_flag(tmp_path):
    job = PretrainingJob(tmp_path)
    assert job.run(histogram_steps=3) == 0
    events = events_of(job.output)
    names = {f"{kind}/{layer}" for kind in KINDS for layer in LAYERS if layer != "layer_1"}
    tags = set(events.Tags()["tensors"])
    assert names <= tags and "loss/total" in tags
    assert [event.step for event in events.Tensors("gradients/layer_0")] == [3, 6]
