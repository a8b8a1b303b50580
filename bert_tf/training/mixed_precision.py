"""Mixed precision: the type that the model computes in, and the loss scale of float16.

Weights, moments and losses are always float32. The loss scale is that of arXiv:1710.03740,
section 3.2.
"""

import os
import warnings

import tensorflow as tf

# Precision -> the name of its Keras policy.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
PRECISIONS = (*POLICIES, "auto")

# The first generation of NVIDIA GPUs that multiplies bfloat16 (Ampere).
BFLOAT16_CAPABILITY = (8, 0)

# Linux's names of the CPU instructions that do.
BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")

# The gradient is scaled up so that its small numbers are not rounded to 0, and the scale is halved
# whenever the gradient overflows: float16 holds nothing above 65,504.
INITIAL_SCALE = 2.0**15

# Finite updates until the scale is doubled; as in the paper and in other libraries.
GROWTH_INTERVAL = 2000

# Below this the gradient is not just too large for float16, but broken.
MINIMUM_SCALE = 1.0


# For a run that named no precision. float32 stays the default, on GPUs too: it gives the numbers of
# Google's own code, and what bfloat16 gives has been measured on CPUs alone.
SUGGESTION = (
    "note: this hardware multiplies bfloat16: --precision=bfloat16 would need less memory and "
    "less time for matrix products"
)


def choose_precision(name):
    """The precision, a key of `POLICIES`, that one of `PRECISIONS` stands for.

    None is float32. "auto" is bfloat16 if the hardware multiplies it; "bfloat16" warns if it does
    not. Then a GPU emulates it, and on a CPU TensorFlow's own kernels truncate sums to bfloat16,
    which the hardware's instructions round: twice the error, towards zero, and slower than float32.
    """
    if name in (None, "float32", "float16"):
        return name or "float32"
    fast, problem = _multiplies_bfloat16()
    if name == "auto":
        return "bfloat16" if fast else "float32"
    if not fast:
        warnings.warn(
            "--precision=bfloat16 is slow and less exact without bfloat16 instructions. Found: "
            f"{problem}; it needs less memory, but --precision=float32 is the better choice where "
            "memory allows",
            stacklevel=2,
        )
    return name


def suggestion(name):
    """A line for the user who named no precision where bfloat16 would be faster, or None."""
    return SUGGESTION if name is None and _multiplies_bfloat16()[0] else None


def _multiplies_bfloat16():
    """Whether the hardware has instructions for bfloat16, and what it is if not."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
        fast = all(d.get("compute_capability", (0, 0)) >= BFLOAT16_CAPABILITY for d in details)
        problem = "a GPU older than Ampere"
    else:
        # Of TensorFlow's kernels, only oneDNN's use those instructions.
        fast = uses_onednn() and bool(_cpu_flags() & set(BFLOAT16_FLAGS))
        hidden = "TF_ENABLE_ONEDNN_OPTS=0, which hides them"
        problem = "a CPU without them" if uses_onednn() else hidden
    return fast, problem


def uses_onednn():
    """Whether TensorFlow has been left its kernels of oneDNN, where it has them."""
    return os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1").lower() not in ("0", "false")


def _cpu_flags():
    """The flags of this machine's CPU, as Linux lists them; empty on other systems."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lines = [line for line in file if line.startswith("flags")]
    except OSError:
        return set()
    return set(lines[0].split(":")[1].split()) if lines else set()


class LossScale:
    """A scale that is halved when a gradient overflows and doubled after many that did not.

    Make it in the strategy's scope.

    Attributes:
        scale: what the loss is multiplied by.
        good_steps: updates since the scale last changed.
    """

    def __init__(self):
        self.scale = tf.Variable(INITIAL_SCALE, trainable=False, name="loss_scale")
        self.good_steps = tf.Variable(0, trainable=False, name="loss_scale_good_steps")


def updated_scale(finite, scale=None, good_steps=None):
    """The two values of a `LossScale` after a step.

    Args:
        finite: whether the step's gradient was, reduced over all replicas.
        scale, good_steps: the values before; None without a loss scale.

    Returns:
        The new scale and count; nothing without a loss scale.
    """
    if scale is None:
        return ()
    good_steps = tf.where(finite, good_steps + 1, 0)
    grows = good_steps >= GROWTH_INTERVAL
    factor = tf.where(finite, tf.where(grows, 2.0, 1.0), 0.5)
    return scale * factor, tf.where(grows, 0, good_steps)
