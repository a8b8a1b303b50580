"""The layers on Keras's JAX backend give the outputs and gradients of TensorFlow's."""

import jax_layers
import numpy as np
import pytest
import tensorflow as tf

from tests.model.test_packed import packed, sequences
from tests.support.crosses import but_slow
from tests.support.paths import ROOT, printed_by
from tests.support.tiny_models import assert_close, random_batch, tensors

KINDS = ("bert", "albert", "bert_blockwise")


def run_on_jax(folder, kind, arrays):
    """What the model returns on JAX, in a process of its own, as Keras has one backend in each."""
    np.savez(folder / "in.npz", **arrays)
    program, files = ROOT / "tests/model/jax_layers.py", (folder / "in.npz", folder / "out.npz")
    printed_by(program, kind, *files, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    return dict(np.load(folder / "out.npz"))


def run_here(model, batch, seeds):
    """The same with TensorFlow."""
    weights = [tf.convert_to_tensor(v.value) for v in model.trainable_variables]

    @tf.function(autograph=False)
    def run(weights):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss, results = jax_layers.loss_and_results(model, batch, seeds, weights)
        return results, [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]

    results, gradients = run(weights)
    paths = [v.path for v in model.trainable_variables]
    found = {f"gradients/{p}": g.numpy() for p, g in zip(paths, gradients, strict=True)}
    return {**found, **{f"results/{name}": value.numpy() for name, value in results.items()}}


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("kind", but_slow(KINDS, ["albert"]))
def test_outputs_and_gradients_equal_tensorflows(tmp_path, kind, monkeypatch):
    """With dropout, padding and, for ALBERT, packed rows."""
    pytest.importorskip("jax", reason="pip install jax")
    monkeypatch.setattr(jax_layers.blockwise, "BLOCK_QUERIES", 128)  # `make_model` changes it
    model = jax_layers.make_model(kind)
    batch = packed(sequences()) if kind == "albert" else random_batch(2)
    rng = np.random.default_rng(1)
    seeds = rng.integers(0, 2**32, (len(model.non_trainable_variables), 2), np.uint32)
    # Larger than initial ones, so that the gradient of every weight is above the rounding.
    weights = {
        v.path: rng.standard_normal(v.shape).astype(np.float32) * 0.1 + (v.name == "gamma")
        for v in model.trainable_variables
    }
    for variable in model.trainable_variables:
        variable.assign(weights[variable.path])
    arrays = {f"weights/{path}": value for path, value in weights.items()}
    arrays |= {f"batch/{name}": value for name, value in batch.items()}
    found = run_on_jax(tmp_path, kind, {**arrays, "seeds": seeds})
    expected, other = (run_here(model, tensors(batch), list(seeds + i)) for i in (0, 1))
    assert_close(found, expected, 1e-5, floor=1e-3)
    name = "results/masked_lm_logits"
    assert np.abs(other[name] - expected[name]).max() > 0.01  # dropout is on
