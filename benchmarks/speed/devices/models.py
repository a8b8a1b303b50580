"""Measures the training of a published size of BERT: speed, memory, step parts and checkpoints.

The steps run as in training, several at once in `TrainingStep.loop`.
"""

import gc
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.speed.contenders import peak_memory
from benchmarks.speed.memory import largest_batch
from bert_tf.config import BertConfig
from bert_tf.costs.cards import CARDS, Card
from bert_tf.costs.flops import training_flops
from bert_tf.memory_estimate import estimate_bytes
from model_formats.encoders import BERT
from run_scripts.tools.check_devices.batches import random_batch
from run_scripts.tools.check_devices.steps import make_parts, scope_of

VOCAB_SIZE = 30522  # of the published English model

# The estimated share of a GPU's memory that the first batch to try needs.
MEMORY_SHARE = 0.9

# Steps to time, after one for compilation (a step takes seconds on a CPU).
STEPS = {"CPU": 2, "GPU": 20}

# The rows on a CPU, and on a GPU whose memory is not known.
ROWS = {"CPU": 8, "GPU": 32}

# Words in names of chips with a different peak, or, with MIG, only a part of the chip.
OTHER_CHIPS = {"LAPTOP", "TI", "MAX", "D", "MIG"}


def measure_model(task):
    """Trains a model at the largest batch that fits.

    Args:
        task: a dict with "size" (a preset of BERT), "length", "predictions", "strategy", "device",
            "num_gpus", "precision", "xla" ("auto" or "off"), "memory_mib" of a GPU or None, and
            "rows" of a device or None for as many as fit.

    Returns:
        The result of `_train`.
    """
    import tensorflow as tf

    from bert_tf.training.xla import choose_compilation, enable_auto_clustering

    compiled = choose_compilation(task["xla"], task["precision"])
    if compiled.auto_clustering:
        enable_auto_clustering()
    config = BertConfig.from_preset(task["size"], vocab_size=VOCAB_SIZE)
    rows = task["rows"] or first_rows(config, task)
    while True:
        try:
            return _train(task, config, compiled, rows)
        except tf.errors.ResourceExhaustedError:
            if rows == 1:
                raise
            rows = max(1, rows * 3 // 4)
        gc.collect()  # frees the failed attempt's weights, which are in reference cycles


def first_rows(config, task):
    """Returns the rows per device to try first, a multiple of eight that is estimated to fit."""
    kind = (task["device"] or "GPU")[:3]
    if kind == "CPU" or not task["memory_mib"]:
        return ROWS[kind]
    limit = MEMORY_SHARE * task["memory_mib"] * 2**20
    sizes = (task["length"], task["predictions"], task["precision"])
    return max(8, largest_batch(limit, config, *sizes) // 8 * 8)


def _train(task, config, compiled, rows):
    """Measures training with a number of rows on a device.

    Returns:
        A dict: "rows", "devices", "steps_per_second", "rows_per_second" of all devices, "flops" of
        a row, "peak_flops" and "utilisation" (None for a device without a published peak),
        "memory" and "estimated_memory" in bytes, "parts" in seconds, "checkpoint".
    """
    import tensorflow as tf

    from bert_tf.training.step import StepConfig, TrainingStep

    kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
    length, predictions = task["length"], task["predictions"]
    with scope_of(task) as strategy:
        # After the strategy, which can only hide GPUs before TensorFlow uses them.
        if kind == "GPU":  # do not count an earlier batch that did not fit
            tf.config.experimental.reset_memory_stats(task["device"] or "GPU:0")
        parts = make_parts(BERT, config, task["precision"], 1e-4, 1e-6)
        step = TrainingStep(strategy=strategy, config=StepConfig(), compilation=compiled, **parts)
        batch = random_batch(config, rows, length, predictions)
        batches = iter(
            strategy.distribute_datasets_from_function(
                lambda _: tf.data.Dataset.from_tensors(batch).repeat()
            )
        )
        # One step to compile, in the same loop.
        loss = step.loop(batches, 1)["loss"].numpy()
        start = time.perf_counter()
        loss = step.loop(batches, STEPS[kind])["loss"].numpy()  # waits for the device
        seconds = (time.perf_counter() - start) / STEPS[kind]
        memory = round(peak_memory() * 2**30) or None
        split = time_parts(step, next(batches), seconds, STEPS[kind])
        checkpoint = time_checkpoint(parts)
    devices = strategy.num_replicas_in_sync
    flops = training_flops(config, length, predictions)
    card = find_card(gpu_name()) if kind == "GPU" else None
    peak = card.bfloat16_flops if card and task["precision"] == "bfloat16" else None
    return {
        "result": "ok" if np.isfinite(loss).all() else f"wrong: the loss is {loss[-1]}",
        "xla": str(compiled),
        "rows": rows,
        "devices": devices,
        "steps_per_second": 1 / seconds,
        "rows_per_second": devices * rows / seconds,
        "flops": flops,
        "peak_flops": peak,
        "utilisation": rows * flops / seconds / peak if peak else None,
        "memory": memory,
        "estimated_memory": estimate_bytes(config, rows, length, predictions, task["precision"]),
        "parts": split,
        "checkpoint": checkpoint,
    }


def time_checkpoint(parts):
    """Returns a checkpoint's seconds to "copy", for which training waits, and "write", and "bytes".

    Args:
        parts: the result of `make_parts`.
    """
    from bert_tf.training.loop import TrainingConfig
    from bert_tf.training.state import TrainingState, start_saving

    state = TrainingState(parts["model"], parts["optimizer"], parts["loss_scale"])
    with tempfile.TemporaryDirectory() as folder:
        config = TrainingConfig(output_dir=folder, train_batch_size=1, num_train_steps=1)
        start = time.perf_counter()
        write = start_saving(state, config)
        copied = time.perf_counter()
        write()
        written = time.perf_counter()
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
    return {"copy": copied - start, "write": written - copied, "bytes": size}


def time_parts(step, batch, whole, count):
    """Measures the seconds of each part of a step.

    Args:
        step: a `bert_tf.training.step.TrainingStep` that has run.
        batch: a batch distributed by its strategy.
        whole: the seconds of a whole step in the loop.
        count: the number of runs of each part.

    Returns:
        A dict of seconds: "forward and backward", "reduction", "update", "step", and "idle", the
        step's time minus these three, which is negative if parts of the step overlap.
    """
    import tensorflow as tf

    from bert_tf.training.replicas import all_reduce, graph

    def replica_gradients(batch):
        context = tf.distribute.get_replica_context()
        objective = step.model.objective
        denominators = objective.denominators(objective.weight_sums(batch))
        sums, gradients = step.forward_backward(
            [v.value for v in step.weights],
            tf.convert_to_tensor(step.optimizer.iterations.value),
            tf.convert_to_tensor(context.replica_id_in_sync_group, tf.int32),
            batch,
            denominators,
            tf.constant(1.0, step.dtype),
        )
        return sums, denominators, gradients

    def replica_reduction(gradients):
        return all_reduce(tf.distribute.get_replica_context(), gradients)

    def replica_update(sums, denominators, gradients):
        context = tf.distribute.get_replica_context()
        trained = tuple(range(len(gradients)))
        return step.update(context, trained, (sums, denominators, gradients))

    strategy = step.strategy
    runs = [
        graph(lambda *arguments, part=part: strategy.run(part, args=arguments))
        for part in (replica_gradients, replica_reduction, replica_update)
    ]
    sums, denominators, gradients = runs[0](batch)
    arguments = ((batch,), (gradients,), (sums, denominators, gradients))
    names = ("forward and backward", "reduction", "update")
    seconds = {
        name: _seconds(run, given, count)
        for name, run, given in zip(names, runs, arguments, strict=True)
    }
    return {**seconds, "step": whole, "idle": whole - sum(seconds.values())}


def _seconds(run, arguments, count):
    """Returns the mean seconds of a call, without the first call, which compiles it."""
    import tensorflow as tf

    run(*arguments)
    tf.test.experimental.sync_devices()
    start = time.perf_counter()
    for _ in range(count):
        run(*arguments)
    tf.test.experimental.sync_devices()
    return (time.perf_counter() - start) / count


def gpu_name():
    """Returns the name of the first GPU."""
    import tensorflow as tf

    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    return details.get("device_name", "")


def find_card(device_name: str) -> Card | None:
    """Returns the `Card` of a name such as "NVIDIA A100-SXM4-80GB"; None if it is not listed."""
    words = device_name.upper().replace("-", " ").split()
    # Cards with the most words come first, so that "H100 PCIe" comes before "H100 SXM".
    for card in sorted(CARDS.values(), key=lambda card: -len(card.name.split())):
        wanted = card.name.upper().split()
        if all(word in words for word in wanted) and not OTHER_CHIPS & set(words):
            return card
    return CARDS["h100"] if "H100" in words and "HBM3" in words else None
