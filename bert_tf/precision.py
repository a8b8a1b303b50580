"""Chooses what the model computes in; weights, moments and losses are float32 always."""

import tensorflow as tf

# What Keras calls each.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}
PRECISIONS = (*POLICIES, "auto")

# The first generation of NVIDIA GPUs that multiplies bfloat16 (Ampere).
BFLOAT16_CAPABILITY = (8, 0)

# What Linux calls the instructions of CPUs that do.
BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")


def choose_precision(name):
    """The precision that a flag means: "auto" is bfloat16 where the hardware multiplies it.

    Args:
        name: one of `PRECISIONS`.

    Returns:
        A key of `POLICIES`.
    """
    if name != "auto":
        return name
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
        fast = all(d.get("compute_capability", (0, 0)) >= BFLOAT16_CAPABILITY for d in details)
    else:
        fast = bool(_cpu_flags() & set(BFLOAT16_FLAGS))
    return "bfloat16" if fast else "float32"


def _cpu_flags():
    """The instructions of this machine's CPU, as Linux lists them; empty elsewhere."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            lines = [line for line in file if line.startswith("flags")]
    except OSError:
        return set()
    return set(lines[0].split(":")[1].split()) if lines else set()
