"""The exported training step under JAX gives the numbers of TensorFlow's."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest

from benchmarks.gpu_step import prepare, program_text
from benchmarks.gpu_step.export import export_step
from benchmarks.gpu_step.state import STATE_FILE, learning_rate, read_state, write_arrays
from bert_tf import WarmupPolynomialDecay
from bert_tf.checkpoint import google_variables
from bert_tf.checkpoint_files import list_checkpoints
from bert_tf.training.state import TrainingState
from bert_tf.training.step import StepConfig
from tests.support.programs import DROPOUT, PretrainingJob, arrays
from tests.support.tiny_models import (
    assert_close,
    forward_backward,
    make_optimizer,
    random_batch,
    split_batch,
    step_of,
    tensors,
    tiny_model,
)

OPTIMIZERS = {"bert": "adamw", "albert": "lamb"}
SEED = 7
TRAIN_STEPS = 20  # after which the learning rate is 0


def export_tiny(folder, kind, **config):
    """Exports the step of a tiny model with dropout for the batches of `random_batch`.

    `config` are fields of `StepConfig`. Returns the state.
    """
    keras.utils.set_random_seed(3)
    model = tiny_model(kind, dropout=0.1)
    optimizer = make_optimizer(OPTIMIZERS[kind], model, TRAIN_STEPS)
    optimizer.bias_correction = kind == "bert"
    state = TrainingState(model, optimizer)
    schedule = state.optimizer._learning_rate.get_config()
    details = {"model": kind, "precision": "float32", "schedule": schedule}
    export_step(str(folder), state, StepConfig(seed=SEED, **config), random_batch(0), details)
    return state


@pytest.fixture
def jax():
    """JAX, which is not among the project's own requirements."""
    return pytest.importorskip("jax", reason="pip install jax")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "config"),
    [("bert", {}), ("albert", {"gradient_accumulation_steps": 2, "recompute": "block"})],
)
def test_gradients_and_update_equal_tensorflows(tmp_path, jax, kind, config):
    """With dropout, whose masks are functions of seed, step and replica."""
    from benchmarks.gpu_step.train import Training

    state = export_tiny(tmp_path, kind, **config)
    variables = prepare._variables(state)
    arrays = {name: variable.numpy() for name, variable in variables.items()}
    counts = {"iterations": np.int64(5), "skipped": np.int64(2)}
    training = Training(tmp_path, jax.devices()[0], {**arrays, **counts})
    batch = random_batch(1)
    named = {f"batch/{name}": value for name, value in batch.items()}
    values = {**training.values, **training.gradients.put({"replica": 3, **named})}
    values |= training.gradients.put(training.denominators(named))
    found = {name: np.asarray(value) for name, value in training.gradients(values).items()}

    options = {"xla": True, "xla_update": True, "seed": SEED, **config}
    step = step_of(state.model, state.optimizer, **options)
    sums, gradients = forward_backward(step, tensors(batch), updates=5, replica=3)
    names = {variable.path: name for name, variable in google_variables(state.model).items()}
    expected = {f"sums/{name}": value.numpy() for name, value in sums.items()}
    for variable, gradient in zip(step.weights, gradients, strict=True):
        expected[f"gradients/{names[variable.path]}"] = gradient.numpy()
    assert_close(found, expected, 1e-5, floor=1e-3)
    other_mask = training.gradients({**values, **training.gradients.put({"replica": 2})})
    key = "gradients/bert/pooler/dense/kernel"
    apart = np.abs(np.asarray(other_mask[key]) - expected[key])
    assert apart.max() > 1e-3 * np.abs(expected[key]).max()

    new = training.step(named, learning_rate(training.description["schedule"], 5))
    state.optimizer.iterations.assign(5)
    state.optimizer.skipped.assign(2)
    metrics = step(split_batch(batch, step.strategy))
    for name in ("loss", "gradient_norm", "skipped"):
        np.testing.assert_allclose(new[f"metrics/{name}"], metrics[name], rtol=1e-5)
    after = training.state()
    assert after.pop("iterations") == 6 and after.pop("skipped") == 2
    # A first update is nearly the gradient's sign: where that is near zero, rounding shows.
    assert_close(after, {n: v.numpy() for n, v in variables.items()}, 1e-4, floor=1e-3)


def test_a_prepared_state_is_small_and_loses_nothing():
    arrays = {
        "weights/half": np.array([0.5, -2.0], np.float32),
        "weights/full": np.array([0.1, 1e6], np.float32),
        "slots/half/adam_m": np.zeros(2, np.float32),
        "slots/full/adam_m": np.array([0.0, 0.1], np.float32),
        "iterations": np.int64(70000),
    }
    small = prepare._small(arrays)
    assert set(small) == set(arrays) - {"slots/half/adam_m"}
    kinds = {name: values.dtype.name for name, values in small.items()}
    assert kinds["weights/half"] == "float16" and kinds["weights/full"] == "float32"
    for name, values in small.items():
        np.testing.assert_array_equal(values, arrays[name])


def test_learning_rate_is_the_schedules():
    for power, warmup, start in ((1.0, 0, 0), (1.0, 30, 0), (2.0, 30, 10)):
        schedule = WarmupPolynomialDecay(3e-4, 100, warmup, power, start)
        for step in (0, 1, 15, 29, 30, 39, 40, 99, 100, 120):
            found = learning_rate(schedule.get_config(), step)
            np.testing.assert_allclose(found, schedule(step), rtol=1e-6)


PROGRESSION = (
    '    %7 = stablehlo.constant dense<"0x{}"> : tensor<2x3xui32> loc(#loc12)\n'
    "    %8 = stablehlo.add %7, %7 : tensor<2x3xui32> "
    'loc(callsite("a(b)" at fused[#loc1, #loc2]))\n'
    '#loc12 = loc("x")\n'
)


def text_of(values):
    return PROGRESSION.format(np.array(values, "<u4").tobytes().hex().upper())


def test_arrays_that_are_progressions_become_operations():
    stride = 0x9E3779B1
    values = np.arange(6, dtype=np.uint32) * np.uint32(stride) + np.uint32(5)
    short = program_text.shorten(text_of(values))
    assert "loc" not in short and '"0x' not in short
    assert f"dense<{stride}> : tensor<6xui32>" in short and "dense<5> : tensor<6xui32>" in short
    assert short.endswith("    %8 = stablehlo.add %7, %7 : tensor<2x3xui32>\n")
    values[4] += 1
    assert '"0x' in program_text.shorten(text_of(values))


def test_progressions_run_to_the_same_numbers(jax):
    from benchmarks.gpu_step.runtime import compile_text

    values = np.arange(6, dtype=np.uint32) * np.uint32(0x9E3779B1) + np.uint32(2**32 - 3)
    body = program_text.shorten(text_of(values).replace("stablehlo.add", "stablehlo.and"))
    text = f"func.func @main() -> tensor<2x3xui32> {{\n{body}    return %8 : tensor<2x3xui32>\n}}\n"
    (found,) = compile_text(text, jax.devices()[0]).execute([])
    np.testing.assert_array_equal(found, values.reshape(2, 3))


@pytest.mark.slow
def test_a_training_goes_to_jax_and_back(tmp_path, capsys):
    """What JAX would have changed is in the checkpoint, from which run_pretraining goes on."""
    job = PretrainingJob(tmp_path, **DROPOUT)
    options = {"xla": "on", "keep_checkpoint_max": 0}
    assert job.run(**options) == 0
    folder = tmp_path / "carried"
    arguments, flags = SimpleNamespace(folder=str(folder)), job.argv(**options)[1:]
    for file in (*job.output.glob("*ckpt-6*"), *job.output.glob("checkpoint")):
        file.unlink()
    assert list_checkpoints(job.output) == [4]
    assert prepare.prepare(arguments, flags) == 0
    assert "state.npz: " in capsys.readouterr().out
    state = read_state(folder / STATE_FILE)
    assert (state["iterations"], state["skipped"]) == (4, 0)
    changed = {name: values * 2 for name, values in state.items() if "/" in name}
    write_arrays(str(folder / STATE_FILE), {**changed, "iterations": np.int64(6)})
    assert prepare.finish(arguments, flags) == 0
    assert list_checkpoints(job.output) == [4, 6]
    before, after = arrays(job.output, 4), arrays(job.output, 6)
    assert set(before) == set(after) and after["global_step"] == 6
    for name, values in changed.items():
        own = name.partition("/")[2]
        np.testing.assert_array_equal(after[own], 2 * before[own], err_msg=name)
        np.testing.assert_array_equal(after[own], values, err_msg=name)
    assert job.run(**options, num_train_steps=8) == 0
    assert "resuming from" in capsys.readouterr().out

    with pytest.raises(AssertionError):
        prepare.prepare(arguments, [*flags, "--precision=float16"])
