"""Compares one training step of a tiny BERT with the CPU's.

Shapes: B batch, T tokens, P predictions, W weights of the model in all.
"""

import contextlib
import functools

import numpy as np

from bert_tf.config import BertConfig

SEED = 1

# The step that is compared: an update whose learning rate is large beside float32's rounding.
# Adam's first update is hardly more than the gradient's sign, and noise decides the sign of
# what is nearly zero; with an epsilon of about a gradient's size the update follows the gradient.
TINY = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
TINY_BATCH = (8, 16, 4)  # B, T, P
LEARNING_RATE, EPSILON = 0.1, 1e-3

# How far the numbers may be from the CPU's: rounding in another order; 8 or 11 bits.
TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-2}


@functools.cache
def strategy_of(name):
    """The strategy, once for each process: its sums are numbered."""
    import tensorflow as tf

    from bert_tf.training.distribution import make_strategy

    # Not `make_strategy`, which refuses it to a worker: the reference is computed there too.
    return tf.distribute.get_strategy() if name == "one_device" else make_strategy(name)


@contextlib.contextmanager
def scope_of(task):
    """Where a task's variables are made and its step is run."""
    import tensorflow as tf

    strategy = strategy_of(task["strategy"])
    device = tf.device(task["device"]) if task["device"] else contextlib.nullcontext()
    with device, strategy.scope():
        yield strategy


def check_step(task):
    """Compares one training step with the CPU's.

    Args:
        task: of `check_tasks`.

    Returns:
        An answer with "difference".
    """
    import tensorflow as tf

    # Before anything else is computed, as several workers need it.
    strategy_of(task["strategy"])
    tf.config.experimental.enable_tensor_float_32_execution(False)
    found = differences(tiny_step(task), reference())
    worst = max(found, key=lambda name: np.nan_to_num(found[name], nan=np.inf))
    good = found[worst] <= TOLERANCES[task["precision"]]  # False for nan too
    result = "ok" if good else f"wrong: {worst} by {found[worst]:.1e}"
    return {"result": result, "difference": float(found[worst])}


@functools.cache
def reference():
    """What `tiny_step` returns on the CPU in float32, without XLA."""
    return tiny_step(
        {"strategy": "one_device", "device": "CPU:0", "xla": False, "precision": "float32"}
    )


def differences(numbers, expected):
    """How far the numbers of a step are from those expected, relative to these.

    Args:
        numbers: what `tiny_step` returns.
        expected: likewise, of one device.

    Returns:
        A dict of floats; "weights" is the worst device's.
    """
    found = {name: abs(numbers[name] / expected[name] - 1) for name in ("loss", "gradient norm")}
    change = expected["weights"][0]  # [W]
    apart = np.linalg.norm(numbers["weights"] - change, axis=1)  # [devices]
    return {**found, "weights": np.max(apart) / np.linalg.norm(change)}


def tiny_step(task):
    """One training step of the tiny BERT, always the same weights and examples.

    Args:
        task: a dict with "strategy", "device", "xla" and "precision".

    Returns:
        A dict: "loss", "gradient norm" and "weights" [devices, W], by how much they changed.
    """
    from bert_tf.training.step import TrainingStep

    config = BertConfig(**TINY)
    with scope_of(task) as strategy:
        parts = make_parts(config, task["precision"], LEARNING_RATE, EPSILON)
        weights = parts["model"].trainable_variables
        # Not the initializers' numbers, which depend on the device.
        rng = np.random.default_rng(SEED)
        start = [rng.normal("gamma" in v.path, 0.1, v.shape).astype(np.float32) for v in weights]
        for variable, value in zip(weights, start, strict=True):
            variable.assign(value)
        step = TrainingStep(strategy=strategy, xla=task["xla"], xla_update=task["xla"], **parts)
        metrics = step(deal(random_batch(config, *TINY_BATCH), strategy))
        copies = [strategy.experimental_local_results(v.value) for v in weights]
        devices = zip(*copies, strict=True)
        flat = np.stack([flatten([v.numpy() for v in device]) for device in devices])
    return {
        "loss": float(metrics["loss"]),
        "gradient norm": float(metrics["gradient_norm"]),
        "weights": flat - flatten(start),
    }


def flatten(arrays):
    """All numbers of some arrays, as one vector."""
    return np.concatenate([array.ravel() for array in arrays])


def make_parts(config, precision, learning_rate, epsilon):
    """Model, optimizer and loss scale, for `TrainingStep`; in the strategy's scope."""
    from bert_tf.model import BertModel
    from bert_tf.optimization import AdamWeightDecay
    from bert_tf.pretraining import PretrainingModel
    from bert_tf.training.mixed_precision import POLICIES, LossScale

    model = PretrainingModel(BertModel(config, dtype=POLICIES[precision]))
    optimizer = AdamWeightDecay(learning_rate, epsilon=epsilon)
    optimizer.build(model.trainable_variables)
    loss_scale = LossScale() if precision == "float16" else None
    return {"model": model, "optimizer": optimizer, "loss_scale": loss_scale}


def random_batch(config, batch, length, predictions):
    """Features of a global batch, always the same ones; every other row is half padding."""
    rng = np.random.default_rng(SEED)
    mask = np.ones((batch, length), np.int32)
    mask[::2, length // 2 :] = 0
    return {
        "input_ids": rng.integers(1, config.vocab_size, (batch, length)).astype(np.int32) * mask,
        "input_mask": mask,
        "segment_ids": rng.integers(0, 2, (batch, length)).astype(np.int32) * mask,
        "masked_lm_positions": np.tile(np.arange(1, predictions + 1, dtype=np.int32), (batch, 1)),
        "masked_lm_ids": rng.integers(1, config.vocab_size, (batch, predictions)).astype(np.int32),
        "masked_lm_weights": np.ones((batch, predictions), np.float32),
        "next_sentence_labels": rng.integers(0, 2, (batch, 1)).astype(np.int32),
        "next_sentence_weights": np.ones(batch, np.float32),
    }


def deal(batch, strategy):
    """The global batch, an equal part for each of the strategy's replicas."""
    import tensorflow as tf

    parts = {k: np.split(v, strategy.num_replicas_in_sync) for k, v in batch.items()}
    return strategy.experimental_distribute_values_from_function(
        lambda context: {
            k: tf.constant(v[context.replica_id_in_sync_group]) for k, v in parts.items()
        }
    )
