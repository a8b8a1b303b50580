"""Compares a training step of a tiny BERT with the same step on the CPU.

Shapes: B batch, T tokens, P predictions, D devices, W weights of the whole model.
"""

import contextlib
import functools

import numpy as np

from bert_tf.config import BertConfig

SEED = 1

# The learning rate is large compared with float32's rounding. Adam's first update is nearly the
# gradient's sign, which is noise where the gradient is nearly zero; with an epsilon of about a
# gradient's size, the update follows the gradient.
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

# The relative differences allowed from the CPU: for another order of sums; for 8 or 11 bits.
TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-2}


@functools.cache
def strategy_of(name):
    """The strategy, created once in each process, as its collective operations are numbered."""
    import tensorflow as tf

    from bert_tf.training.distribution import make_strategy

    # `make_strategy` refuses one device to a worker, which computes the reference too.
    return tf.distribute.get_strategy() if name == "one_device" else make_strategy(name)


@contextlib.contextmanager
def scope_of(task):
    """The context in which a task creates its variables and runs its step."""
    import tensorflow as tf

    strategy = strategy_of(task["strategy"])
    device = tf.device(task["device"]) if task["device"] else contextlib.nullcontext()
    with device, strategy.scope():
        yield strategy


def check_step(task):
    """Compares a training step with the same step on the CPU: an answer with "difference".

    Args:
        task: as from `check_tasks`.
    """
    import tensorflow as tf

    # Several workers need their strategy before anything else is computed.
    strategy_of(task["strategy"])
    tf.config.experimental.enable_tensor_float_32_execution(False)
    errors = differences(tiny_step(task), reference())
    worst = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    good = errors[worst] <= TOLERANCES[task["precision"]]  # False for NaN too
    result = "ok" if good else f"wrong: {worst} by {errors[worst]:.1e}"
    return {"result": result, "difference": float(errors[worst])}


@functools.cache
def reference():
    """The results of `tiny_step` on the CPU in float32 without XLA."""
    return tiny_step(
        {"strategy": "one_device", "device": "CPU:0", "xla": False, "precision": "float32"}
    )


def differences(numbers, expected):
    """The relative differences between the results of two steps.

    Args:
        numbers: the results of `tiny_step`.
        expected: likewise, on one device.

    Returns:
        A dict of floats; "weights" is that of the worst device.
    """
    errors = {name: abs(numbers[name] / expected[name] - 1) for name in ("loss", "gradient norm")}
    update = expected["weights"][0]  # [W]
    distances = np.linalg.norm(numbers["weights"] - update, axis=1)  # [D]
    return {**errors, "weights": np.max(distances) / np.linalg.norm(update)}


def tiny_step(task):
    """Runs one training step of the tiny BERT, always with the same weights and examples.

    Args:
        task: a dict with "strategy", "device", "xla" and "precision".

    Returns:
        A dict: "loss", "gradient norm" and "weights" [D, W], the update of the weights.
    """
    from bert_tf.training.step import StepConfig, TrainingStep
    from bert_tf.training.xla import Compilation

    config = BertConfig(**TINY)
    with scope_of(task) as strategy:
        parts = make_parts(config, task["precision"], LEARNING_RATE, EPSILON)
        weights = parts["model"].trainable_variables
        # Replaces the initializers' values, which depend on the device.
        rng = np.random.default_rng(SEED)
        start = [rng.normal("gamma" in v.path, 0.1, v.shape).astype(np.float32) for v in weights]
        for variable, value in zip(weights, start, strict=True):
            variable.assign(value)
        compilation = Compilation(whole=task["xla"], auto_clustering=False, update=task["xla"])
        step = TrainingStep(
            strategy=strategy, config=StepConfig(), compilation=compilation, **parts
        )
        metrics = step(deal(random_batch(config, *TINY_BATCH), strategy))
        copies = [strategy.experimental_local_results(v.value) for v in weights]
        devices = zip(*copies, strict=True)
        flat = np.stack([flatten([v.numpy() for v in device]) for device in devices])  # [D, W]
    return {
        "loss": float(metrics["loss"]),
        "gradient norm": float(metrics["gradient_norm"]),
        "weights": flat - flatten(start),
    }


def flatten(arrays):
    """Concatenates the values of arrays to one vector."""
    return np.concatenate([array.ravel() for array in arrays])


def make_parts(config, precision, learning_rate, epsilon):
    """Creates model, optimizer and loss scale for `TrainingStep`, in the strategy's scope."""
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
    """Creates the features of a global batch, always the same; every other row is half padding."""
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
    """Distributes a global batch in equal parts to the strategy's replicas."""
    import tensorflow as tf

    parts = {k: np.split(v, strategy.num_replicas_in_sync) for k, v in batch.items()}
    return strategy.experimental_distribute_values_from_function(
        lambda context: {
            k: tf.constant(v[context.replica_id_in_sync_group]) for k, v in parts.items()
        }
    )
