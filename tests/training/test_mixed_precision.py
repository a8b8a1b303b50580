"""Reduced precision: what stays in float32, the loss scale of float16, training in bfloat16."""

import json
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert_common.cpu import CPU
from bert_tf import layers
from bert_tf.input.training_records import TrainingRecords
from bert_tf.pretraining import example_losses, loss_sums
from bert_tf.training import mixed_precision
from bert_tf.training.interruptions.nonfinite_steps import SKIPPED_FILE
from bert_tf.training.mixed_precision import (
    INITIAL_SCALE,
    POLICIES,
    PRECISIONS,
    LossScale,
    choose_precision,
    suggestion,
    updated_scale,
)
from tests.support.crosses import slow
from tests.support.programs import PretrainingJob, spoken_lines
from tests.support.tiny_models import (
    ONE_LAYER,
    assert_close,
    computing_in,
    make_step,
    random_batch,
    split_batch,
    strategy_of,
    tensors,
    tiny_model,
    training_state,
)

REDUCED = ("bfloat16", "float16")

# A number that neither bfloat16 nor float16 has.
SCALE = 1 + 2**-12

# A scale at which the gradient of the logits is beyond float16.
TOO_LARGE = 2.0**40


@pytest.mark.parametrize("precision", REDUCED)
def test_what_is_computed_in_float32(monkeypatch, precision):
    with computing_in(POLICIES[precision]):
        model = tiny_model(dropout=0.1)
    seen = {"softmax": [], "norm": [], "dense": [], "block": [], "matmul": []}
    norms = []

    def record(owner, attribute, name):
        original = getattr(owner, attribute)

        def recording(*arguments, **options):
            result = original(*arguments, **options)
            # Of a method the first argument is the layer.
            tensor = arguments[isinstance(arguments[0], keras.layers.Layer)]
            seen[name].append((tf.as_dtype(tensor.dtype).name, tf.as_dtype(result.dtype).name))
            if name == "norm":
                terms = [tf.cast(x, tf.float64).numpy() for x in arguments[1:]]
                norms.append((sum(terms), result.numpy()))
            return result

        monkeypatch.setattr(owner, attribute, recording)

    record(layers.ops, "softmax", "softmax")
    record(layers.ops, "matmul", "matmul")
    record(layers.LayerNorm, "call", "norm")
    record(keras.layers.Dense, "call", "dense")
    record(layers.TransformerBlock, "call", "block")
    for variable in model.trainable_variables:
        if variable.name == "gamma":
            variable.assign(variable * SCALE)
    batch = tensors(random_batch(0))
    outputs = model(batch, training=True)

    assert seen["softmax"] == [("float32", "float32")] * 2
    # Two in each layer, one of the embeddings, one of the head: terms in the lower precision come
    # in, and neither their sum nor what goes out is rounded to it.
    assert [output for _, output in seen["norm"]] == ["float32"] * 6
    for x, y in norms:
        deviation = np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        expected = (x - x.mean(-1, keepdims=True)) / deviation * SCALE
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    assert len(seen["dense"]) == 2 * 6 + 2
    # The embeddings: one-hot rows of the token types times their table.
    assert seen["matmul"].pop(0) == ("float32", "float32")
    for name in ("dense", "block", "matmul"):
        assert set(seen[name]) == {(precision, precision)}, name
    assert {losses.dtype.name for losses in example_losses(outputs, batch).values()} == {"float32"}
    assert {value.dtype.name for value in loss_sums(outputs, batch).values()} == {"float32"}


@pytest.mark.parametrize(
    "precision, xla", (slow("bfloat16", False), ("float16", False), slow("bfloat16", True))
)
def test_training_lowers_the_loss(precision, xla):
    make = LossScale if precision == "float16" else lambda: None
    policy = POLICIES[precision]
    step = make_step(policy=policy, make_loss_scale=make, xla=xla, sizes=ONE_LAYER)
    batch = tensors(random_batch(0))
    metrics = [step(batch) for _ in range(30)]
    losses = [float(each["loss"]) for each in metrics]
    assert np.isfinite(losses).all() and losses[-1] < 0.5 * losses[0]
    # The loss scale starts so high that it may have to be halved, once or twice.
    skipped = sum(float(each["skipped"]) for each in metrics)
    assert skipped <= (2 if precision == "float16" else 0)
    assert {value.dtype.name for value in metrics[0].values()} == {"float32"}
    for name, (value,) in training_state(step).items():
        assert value.dtype == np.float32, name
        # Not float32 numbers that were rounded to the lower precision.
        rounded = tf.cast(tf.cast(value, precision), tf.float32).numpy()
        assert value.size < 100 or not np.array_equal(value, rounded), name


@pytest.mark.parametrize("devices, xla", (slow(1, True), (2, False)))
def test_overflow_halves_the_scale_and_skips(devices, xla):
    strategy = strategy_of(devices)
    scaled = {"policy": "mixed_float16", "make_loss_scale": LossScale}
    step = make_step(strategy=strategy, xla=xla, sizes=ONE_LAYER, **scaled)
    scale, good = step.loss_scale, random_batch(0)

    def run(batch):
        return {name: float(value) for name, value in step(split_batch(batch, strategy)).items()}

    assert run(good)["loss_scale"] == INITIAL_SCALE
    assert scale.good_steps.numpy() == 1
    before = training_state(step)
    scale.scale.assign(TOO_LARGE)
    for i in (1, 2):
        metrics = run(good)
        assert metrics["skipped"] == 1
        assert np.isfinite(metrics["loss"]) and not np.isfinite(metrics["gradient_norm"])
        # The scale that the step was computed with; the next has half of it.
        assert metrics["loss_scale"] == 2 * TOO_LARGE / 2**i
        assert (scale.scale.numpy(), scale.good_steps.numpy()) == (TOO_LARGE / 2**i, 0)
    after = training_state(step)
    for name, values in before.items():
        np.testing.assert_array_equal(after[name], values, err_msg=name)
    assert step.optimizer.iterations.numpy() == 3
    for value in strategy.experimental_local_results(scale.scale):
        assert value.numpy() == TOO_LARGE / 4
    scale.scale.assign(INITIAL_SCALE)
    metrics = run(good)
    assert metrics["skipped"] == 0 and np.isfinite(metrics["gradient_norm"])
    # A record whose loss is not finite, in every pass, would halve it until all gradients were 0.
    broken = random_batch(0)
    broken["masked_lm_weights"][-1, 0] = np.nan
    metrics = run(broken)
    assert metrics["skipped"] == 1 and np.isnan(metrics["loss"])
    assert scale.scale.numpy() == INITIAL_SCALE


def test_scale_doubles_after_good_steps(monkeypatch):
    monkeypatch.setattr(mixed_precision, "GROWTH_INTERVAL", 3)
    scale, good_steps = tf.constant(INITIAL_SCALE), tf.constant(0)
    seen = []
    for finite in (True, True, True, True, True, False, True, True, True):
        scale, good_steps = updated_scale(tf.constant(not finite), scale, good_steps)
        seen.append((scale.numpy() / INITIAL_SCALE, int(good_steps)))
    # The overflow is in the middle of a series, which begins anew.
    assert seen == [(1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (1, 0), (1, 1), (1, 2), (2, 0)]


@pytest.mark.slow
def test_an_overflow_is_no_fault_of_the_records(tmp_path, capsys, monkeypatch):
    """Its step is noted without them: to find them the records are read up to there."""
    job = PretrainingJob(tmp_path)
    monkeypatch.setattr(mixed_precision, "INITIAL_SCALE", TOO_LARGE)
    monkeypatch.setattr(TrainingRecords, "names", None)
    assert job.run(num_train_steps=4, precision="float16") == 0
    warned = spoken_lines(capsys.readouterr().err)[0]
    assert "step 1 changed no weight" in warned and "too large for float16 at loss" in warned
    first = json.loads((job.output / SKIPPED_FILE).read_text().splitlines()[0])
    assert first["step"] == 1 and first["records"] == []


@pytest.mark.slow
def test_scaled_update_in_float16_is_that_of_float32():
    batch = tensors(random_batch(0))
    states, norms = [], []
    for policy, make in (("float32", lambda: None), ("mixed_float16", LossScale)):
        step = make_step(policy=policy, make_loss_scale=make, sizes=ONE_LAYER)
        norms.append(float(step(batch)["gradient_norm"]))
        moments = training_state(step).items()
        states.append({name: value for name, (value,) in moments if name.endswith("/adam_m")})
    assert norms[1] == pytest.approx(norms[0], rel=0.01)
    assert_close(states[1], states[0], 0.02, floor=1e-3)


def test_choice_of_precision(monkeypatch):
    assert PRECISIONS == ("float32", "bfloat16", "float16", "auto")
    for name in ("float32", "float16"):
        assert choose_precision(name) == name
    assert choose_precision(None) == "float32"
    assert choose_precision("auto") in ("float32", "bfloat16")
    for capability, expected in (((7, 5), "float32"), ((8, 0), "bfloat16"), ((9, 0), "bfloat16")):
        details = {"compute_capability": capability}
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
        monkeypatch.setattr(
            tf.config.experimental, "get_device_details", lambda gpu, found=details: found
        )
        assert choose_precision("auto") == expected
        assert bool(suggestion(None)) == (expected == "bfloat16")
        assert [suggestion(name) for name in PRECISIONS] == [None] * 4
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert choose_precision("bfloat16") == "bfloat16"
        assert len(caught) == (expected == "float32")


@pytest.mark.parametrize(
    "vendor, flags, onednn, expected, found",
    (
        ("AuthenticAMD", {"fma", "avx512_bf16"}, "1", "bfloat16", None),
        ("GenuineIntel", {"fma", "avx512_bf16", "amx_bf16"}, "1", "bfloat16", None),
        ("GenuineIntel", {"fma", "avx512_bf16"}, "1", "float32", "Intel's CPUs without AMX"),
        ("GenuineIntel", {"fma", "avx2"}, "1", "float32", "a CPU that has no instructions"),
        ("", set(), "1", "float32", "a CPU that has no instructions"),
        ("GenuineIntel", {"fma", "amx_bf16"}, "0", "float32", "TF_ENABLE_ONEDNN_OPTS=0"),
    ),
)
def test_bfloat16_is_for_cpus_that_multiply_it_faster(
    monkeypatch, vendor, flags, onednn, expected, found
):
    monkeypatch.setattr(mixed_precision, "this_cpu", lambda: CPU("a CPU", vendor, frozenset(flags)))
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", onednn)
    assert choose_precision("auto") == expected
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert choose_precision("bfloat16") == "bfloat16"
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == bool(found) and all(found in message for message in messages)


@pytest.mark.slow
@pytest.mark.parametrize("how", (None, "float32"))
def test_a_run_that_named_no_precision_is_told_of_bfloat16(tmp_path, monkeypatch, capsys, how):
    monkeypatch.setattr(mixed_precision, "this_cpu", lambda: CPU("", "", frozenset({"amx_bf16"})))
    job = PretrainingJob(tmp_path)
    assert job.run(num_train_steps=1, precision=how) == 0
    out = capsys.readouterr().out
    assert ("note: this hardware multiplies bfloat16" in out) == (how is None)
    assert "training on the CPU in float32" in out
