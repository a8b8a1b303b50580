"""Compares a training step of a tiny BERT with the same step on the CPU.

Shapes: B batch, T tokens, P predictions, S sequences of a packed row, D devices, W weights of the
whole model.
"""

import contextlib
import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bert_tf.config import EncoderConfig
from model_formats.encoders import ALBERT, BERT, ENCODERS, Encoder
from run_scripts.tools.check_devices.batches import BATCHES, deal

if TYPE_CHECKING:
    import tensorflow as tf

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
TINY_BATCH = (8, 16, 4)  # B unless the task gives one, T, P
LEARNING_RATE, EPSILON = 0.1, 1e-3

# The relative differences allowed from the CPU: for a different order of sums; for 8 or 11 bits.
TOLERANCES = {"float32": 1e-4, "bfloat16": 5e-2, "float16": 5e-2}


PLAIN = "plain"


@dataclasses.dataclass(frozen=True)
class Option:
    """A way of training whose numbers are checked, besides devices, XLA and precisions."""

    encoder: str = BERT.name  # a key of `ENCODERS`
    optimizer: str = "adamw"
    batch: str = PLAIN  # a key of `batches.BATCHES`
    # Sizes of the model that replace or extend `TINY`.
    sizes: dict[str, Any] = dataclasses.field(default_factory=dict)
    settings: dict[str, Any] = dataclasses.field(default_factory=dict)  # fields of `StepConfig`
    steps: int = 1
    # The option whose step on the CPU has the same numbers; None if there is none, because every
    # replica drops other activations.
    reference: str | None = PLAIN


_DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}

OPTIONS = {
    PLAIN: Option(),
    "albert": Option(
        encoder=ALBERT.name,
        sizes={"embedding_size": 16, "num_hidden_layers": 2},
        reference="albert",
    ),
    "lamb": Option(optimizer="lamb", reference="lamb"),
    "dropout": Option(sizes=_DROPOUT, reference="dropout"),
    "accumulation": Option(settings={"gradient_accumulation_steps": 2}),
    "recompute": Option(settings={"recompute": "block"}),
    "short rows": Option(batch="short rows", reference="short rows"),
    # A batch that is cut to 8 of 16 positions gives the same numbers as the whole one.
    "buckets": Option(
        batch="bucket", settings={"bucket_boundaries": (8, 16)}, reference="short rows"
    ),
    "packed rows": Option(batch="packed", reference="packed rows"),
    # Several options together, to check that replicas stay equal.
    "three steps": Option(
        optimizer="lamb",
        batch="packed",
        sizes=_DROPOUT,
        settings={"gradient_accumulation_steps": 2, "recompute": "block"},
        steps=3,
        reference=None,
    ),
}

# The options to check on one device, and on several.
ON_ONE_DEVICE = ("albert", "lamb", "dropout", "accumulation", "recompute", "buckets", "packed rows")
ON_SEVERAL = ("lamb", "accumulation", "recompute", "buckets", "packed rows", "three steps")


@functools.cache
def strategy_of(name: str, num_gpus: int | None = None) -> "tf.distribute.Strategy":
    """Returns the strategy, created once per process as its collective operations are numbered."""
    import tensorflow as tf

    from bert_tf.training.distribution import barrier, make_strategy

    if name == "one_device":
        # `make_strategy` refuses one device in a worker, but workers compute the reference too.
        return tf.distribute.get_strategy()
    if name == "split":
        # Two logical GPUs on one card, reduced by copies because NCCL refuses a card given twice.
        kind = "GPU" if tf.config.list_logical_devices("GPU") else "CPU"
        return tf.distribute.MirroredStrategy(
            [f"{kind}:0", f"{kind}:1"], cross_device_ops=tf.distribute.HierarchicalCopyAllReduce()
        )
    strategy = make_strategy(name, num_gpus)
    # As the programs do before they make a model: without it, a variable's broadcast, as the first
    # collective operation of two processes, never ended in a third of the runs.
    barrier(strategy)
    return strategy


@contextlib.contextmanager
def scope_of(task: Mapping[str, Any]) -> Iterator["tf.distribute.Strategy"]:
    """Yields the strategy, in the context where a task creates its variables and runs its step."""
    import tensorflow as tf

    strategy = strategy_of(task["strategy"], task.get("num_gpus"))
    device = tf.device(task["device"]) if task["device"] else contextlib.nullcontext()
    with device, strategy.scope():
        yield strategy


def check_step(task: Mapping[str, Any]) -> dict[str, Any]:
    """Compares a training step with the same step on the CPU; the answer has "difference".

    If there are several replicas, all must have the same weights afterwards, to the bit.
    """
    import tensorflow as tf

    # Several workers need their strategy before anything else is computed.
    strategy_of(task["strategy"])
    tf.config.experimental.enable_tensor_float_32_execution(False)
    numbers = tiny_step(task)
    option = OPTIONS[task.get("option", PLAIN)]
    if option.reference:
        errors = differences(numbers, reference(option.reference, task.get("rows", TINY_BATCH[0])))
    else:
        errors = {"loss": 0.0 if np.isfinite(numbers["loss"]) else np.nan}
    worst = max(errors, key=lambda name: np.nan_to_num(errors[name], nan=np.inf))
    good = errors[worst] <= TOLERANCES[task["precision"]]  # False for NaN too
    result = "ok" if good else f"wrong: {worst} by {errors[worst]:.1e}"
    if good and numbers.get("different_replicas", 1) > 1:
        result = "wrong: the replicas' weights are not equal"
    return {"result": result, "difference": float(errors[worst])}


@functools.cache
def reference(option: str, rows: int) -> dict[str, Any]:
    """Returns the results of `tiny_step` on the CPU in float32 without XLA."""
    where = {"strategy": "one_device", "device": "CPU:0", "xla": False, "precision": "float32"}
    return tiny_step({**where, "option": option, "rows": rows})


def differences(numbers: Mapping[str, Any], expected: Mapping[str, Any]) -> dict[str, float]:
    """Returns the relative differences of two steps' results; for weights, the worst device's."""
    errors = {name: abs(numbers[name] / expected[name] - 1) for name in ("loss", "gradient norm")}
    update = expected["weights"][0]  # [W]
    distances = np.linalg.norm(numbers["weights"] - update, axis=1)  # [D]
    return {**errors, "weights": np.max(distances) / np.linalg.norm(update)}


def tiny_step(task: Mapping[str, Any]) -> dict[str, Any]:
    """Runs training steps of the tiny BERT, always with the same weights and examples.

    Args:
        task: has "strategy", "device", "xla", "precision", and perhaps "option", a key of
            `OPTIONS`, and "rows", the rows of a batch.

    Returns:
        "loss", "gradient norm", "weights" [D, W], the update of the weights, and
        "different_replicas", how many different weights all replicas of all workers have.
    """
    from bert_tf.training.step import StepConfig, TrainingStep
    from bert_tf.training.xla import Compilation

    option = OPTIONS[task.get("option", PLAIN)]
    encoder = ENCODERS[option.encoder]
    config = encoder.config(**{**TINY, **option.sizes})
    with scope_of(task) as strategy:
        parts = make_parts(
            encoder, config, task["precision"], LEARNING_RATE, EPSILON, option.optimizer
        )
        weights = parts["model"].trainable_variables
        # Replaces the initializers' values, which depend on the device.
        rng = np.random.default_rng(SEED)
        start = [rng.normal("gamma" in v.path, 0.1, v.shape).astype(np.float32) for v in weights]
        for variable, value in zip(weights, start, strict=True):
            variable.assign(value)
        compilation = Compilation(whole=task["xla"], auto_clustering=False, update=task["xla"])
        step = TrainingStep(
            strategy=strategy,
            config=StepConfig(**option.settings),
            compilation=compilation,
            **parts,
        )
        sizes = (task.get("rows", TINY_BATCH[0]), *TINY_BATCH[1:])
        batch = deal(BATCHES[option.batch](config, *sizes), strategy)
        for _ in range(option.steps):
            metrics = step(batch)
        copies = [strategy.experimental_local_results(v.value) for v in weights]
        devices = zip(*copies, strict=True)
        flat = np.stack([flatten([v.numpy() for v in device]) for device in devices])  # [D, W]
    return {
        "loss": float(metrics["loss"]),
        "gradient norm": float(metrics["gradient_norm"]),
        "weights": flat - flatten(start),
        "different_replicas": count_different(strategy, flat),
    }


def count_different(strategy: "tf.distribute.Strategy", weights: np.ndarray) -> int:
    """Counts the different rows of the weights [D, W] of all workers, by their bits."""
    from bert_tf.training.distribution import gather_texts

    digests = ",".join(hashlib.sha256(row.tobytes()).hexdigest() for row in weights)
    return len({digest for text in gather_texts(strategy, digests) for digest in text.split(",")})


def flatten(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """Concatenates the values of arrays into one vector."""
    return np.concatenate([array.ravel() for array in arrays])


def make_parts(
    encoder: Encoder,
    config: EncoderConfig,
    precision: str,
    learning_rate: float,
    epsilon: float,
    optimizer: str = "adamw",
) -> dict[str, Any]:
    """Creates model, optimizer and loss scale for `TrainingStep`, in the strategy's scope."""
    from bert_tf.optimization import OPTIMIZERS
    from bert_tf.pretraining import PretrainingModel
    from bert_tf.training.mixed_precision import POLICIES, LossScale

    model = PretrainingModel(encoder.make_model(config, dtype=POLICIES[precision]))
    optimizer = OPTIMIZERS[optimizer](learning_rate, epsilon=epsilon)
    optimizer.build(model.trainable_variables)
    loss_scale = LossScale() if precision == "float16" else None
    return {"model": model, "optimizer": optimizer, "loss_scale": loss_scale}
