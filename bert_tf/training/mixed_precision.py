"""Chooses the precision in which the model computes, and scales the loss for float16.

Weights, moments and losses are always float32. The loss scale follows arXiv:1710.03740,
section 3.2.
"""

import os
import warnings
from typing import Any

import tensorflow as tf

from bert_common.cpu import AMX, AVX512, this_cpu

# Precision -> name of its Keras policy.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
PRECISIONS = (*POLICIES, "auto")

# The first generation of NVIDIA GPUs that can multiply bfloat16 (Ampere).
BFLOAT16_CAPABILITY = (8, 0)

# Linux's name of the vendor whose CPUs are slower with AVX-512's bfloat16 instructions than in
# float32: on an Intel Emerald Rapids with AMX hidden, oneDNN multiplies bfloat16 at 77 GFLOP/s per
# core and float32 at 153, and an update of a small model takes 1.4 times as long.
SLOW_AVX512_VENDOR = "GenuineIntel"

# The gradient is scaled up so that small numbers are not rounded to 0. The scale is halved whenever
# the gradient overflows, as float16 holds no number above 65,504.
INITIAL_SCALE = 2.0**15

# Updates without an overflow until the scale is doubled, as in the paper and other libraries.
GROWTH_INTERVAL = 2000

# If the gradient still overflows at this scale, it is broken, not just too large for float16.
MINIMUM_SCALE = 1.0


def choose_precision(name: str | None) -> str:
    """Returns the precision, a key of `POLICIES`, that one of `PRECISIONS` stands for.

    None is float32. "auto" is bfloat16 if the hardware multiplies it faster than float32;
    "bfloat16" warns if it does not. Without bfloat16 instructions a GPU emulates them, and on a CPU
    TensorFlow's own kernels truncate sums that the hardware would round, which doubles the error,
    biases it towards zero, and is slower than float32.
    """
    if name is None or name in ("float32", "float16"):
        return name or "float32"
    problem = _problem_of_bfloat16()
    if name == "auto":
        return "float32" if problem else "bfloat16"
    if problem:
        warnings.warn(
            f"--precision=bfloat16 is {problem}; it needs less memory, but --precision=float32 is "
            "the better choice where memory allows",
            stacklevel=2,
        )
    return name


def suggestion(name: str | None) -> str | None:
    """Returns a hint if no precision was named and bfloat16 would be faster, or None.

    float32 stays the default, also on GPUs, because it gives the numbers of Google's own code, and
    bfloat16's results have been measured only on CPUs.
    """
    if name is not None or _problem_of_bfloat16():
        return None
    return (
        "note: this hardware multiplies bfloat16: --precision=bfloat16 would need less memory and "
        "less time for matrix products"
    )


def _problem_of_bfloat16():
    """Describes bfloat16's problem on this hardware; None if it is faster than float32."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
        if all(d.get("compute_capability", (0, 0)) >= BFLOAT16_CAPABILITY for d in details):
            return None
        return "slow and less exact on a GPU older than Ampere, which has no instructions for it"
    # On a CPU, only oneDNN's kernels use bfloat16 instructions.
    if os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1").lower() in ("0", "false"):
        return "slow and less exact with TF_ENABLE_ONEDNN_OPTS=0, which hides the instructions"
    cpu = this_cpu()
    if AMX in cpu.flags or (AVX512 in cpu.flags and cpu.vendor != SLOW_AVX512_VENDOR):
        return None
    if AVX512 in cpu.flags:
        return "slower than float32 on Intel's CPUs without AMX"
    return "slow and less exact on a CPU that has no instructions for it"


class LossScale:
    """The loss scale, halved when a gradient overflows and doubled after many that did not.

    Create it in the strategy's scope.
    """

    def __init__(self) -> None:
        self.scale = tf.Variable(INITIAL_SCALE, trainable=False, name="loss_scale")
        self.good_steps = tf.Variable(0, trainable=False, name="loss_scale_good_steps")


def updated_scale(overflows: tf.Tensor, scale: Any, good_steps: Any) -> tuple[tf.Tensor, ...]:
    """Computes the new scale and count of a `LossScale` after a step.

    `overflows`: whether the gradient, reduced over all replicas, is not finite but the loss is.
    """
    good_steps = tf.where(overflows, 0, good_steps + 1)
    grows = good_steps >= GROWTH_INTERVAL
    factor = tf.where(overflows, 0.5, tf.where(grows, 2.0, 1.0))
    return scale * factor, tf.where(grows, 0, good_steps)
