"""Measures how fast a device computes matrix products and steps of BERT-base."""

import re
import time
from pathlib import Path

import numpy as np

from bert_tf.config import BertConfig
from run_scripts.tools.check_devices.steps import SEED, deal, make_parts, random_batch, scope_of

# The size of the matrices, the batch of a BERT-base step, and the number of steps to time (one
# takes seconds on a CPU).
PRODUCT_SIZES = {"CPU": 2048, "GPU": 8192}
BASE_BATCHES = {"CPU": (8, 128, 20), "GPU": (32, 128, 20)}  # B, T, P
BASE_STEPS = {"CPU": 2, "GPU": 20}
BASE_VOCAB_SIZE = 30522  # of the published English model

# The time for which products are repeated, as a single one takes a millisecond on a GPU.
PRODUCT_SECONDS, MAX_PRODUCTS = 0.5, 1000


def measure_products(task):
    """Times products of two square matrices: "speed" in floating-point operations per second.

    Args:
        task: a dict with "device" and "precision".
    """
    import tensorflow as tf

    size = PRODUCT_SIZES[task["device"][:3]]

    @tf.function
    def run(matrix, count):
        product = matrix
        for _ in tf.range(count):
            product = tf.matmul(matrix, product)
        return tf.reduce_sum(tf.cast(product[0], tf.float32))

    def seconds(count):
        start = time.perf_counter()
        run(matrix, tf.constant(count)).numpy()
        return (time.perf_counter() - start) / count

    with tf.device(task["device"]):
        # Scaled so that repeated products neither grow nor shrink.
        matrix = tf.random.stateless_normal([size, size], [SEED, 0], stddev=size**-0.5)
        matrix = tf.cast(matrix, task["precision"])
        seconds(1)  # traces the function and chooses kernels
        count = min(MAX_PRODUCTS, 1 + int(PRODUCT_SECONDS / seconds(1)))
        return {"result": "ok", "speed": 2 * size**3 / seconds(count)}


def measure_base(task):
    """Times training steps of BERT-base, with dropout, after a first one for compilation.

    Args:
        task: a dict with "device", "precision" and "xla" ("auto" or "off").

    Returns:
        An answer with "xla", "batch", "steps_per_second" and "memory": the peak memory in bytes, of
        the GPU, or of the process on a CPU; None if unknown.
    """
    import tensorflow as tf

    from bert_tf.training.step import StepConfig, TrainingStep
    from bert_tf.training.xla import choose_compilation, enable_auto_clustering

    kind = task["device"][:3]
    compiled = choose_compilation(task["xla"], task["precision"])
    if compiled.auto_clustering:
        enable_auto_clustering()
    config = BertConfig.from_preset("base", vocab_size=BASE_VOCAB_SIZE)
    with scope_of(task) as strategy:
        parts = make_parts(config, task["precision"], 1e-4, 1e-6)
        step = TrainingStep(strategy=strategy, config=StepConfig(), compilation=compiled, **parts)
        batch = deal(random_batch(config, *BASE_BATCHES[kind]), strategy)
        loss = float(step(batch)["loss"])
        start = time.perf_counter()
        for _ in range(BASE_STEPS[kind]):
            metrics = step(batch)
        loss = float(metrics["loss"])  # waits for the device
        seconds = (time.perf_counter() - start) / BASE_STEPS[kind]
    if kind == "GPU":
        memory = tf.config.experimental.get_memory_info(task["device"])["peak"]
    else:
        memory = peak_memory()
    return {
        "result": "ok" if np.isfinite(loss) else f"wrong: the loss is {loss}",
        "xla": str(compiled),
        "batch": BASE_BATCHES[kind],
        "steps_per_second": 1 / seconds,
        "memory": memory,
    }


def peak_memory():
    """The peak memory of this process in bytes; None if the system does not report it."""
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"^VmHWM:\s*(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None
