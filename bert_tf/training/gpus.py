"""Rejects GPUs that TensorFlow cannot use, as it would train on the CPU instead, or crash."""

import ctypes
import os
import re
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from bert_common.errors import InputError

# The libraries that TensorFlow for CUDA 12 loads, from the driver and from the extra "gpu".
DRIVER = "libcuda.so.1"
LIBRARIES = (
    "libcudart.so.12",
    "libcublas.so.12",
    "libcublasLt.so.12",
    "libcufft.so.11",
    "libcusolver.so.11",
    "libcusparse.so.12",
    "libcudnn.so.9",
    "libnccl.so.2",
)

# nvidia-smi usually answers within a second, but may hang if the driver is broken.
SMI_SECONDS = 30


def check_gpus(ignore_compute_capability: bool = False) -> None:
    """Raises an InputError if TensorFlow does not find this machine's GPUs or has no code for one.

    GPUs that CUDA_VISIBLE_DEVICES hides do not count. `ignore_compute_capability` accepts GPUs for
    which this TensorFlow was not built.
    """
    gpus = tf.config.list_physical_devices("GPU")
    names = machine_gpus()
    if 0 < len(gpus) < len(names) and "CUDA_VISIBLE_DEVICES" not in os.environ:
        warnings.warn(
            f"TensorFlow finds {len(gpus)} of this machine's {len(names)} GPUs; nvidia-smi shows "
            "which is missing",
            stacklevel=2,
        )
    if names and not gpus:
        raise InputError(
            "TensorFlow must find this machine's GPU, or --device=cpu must be given. Received: "
            f"{names[0]}, but {_why_not_found()}"
        )
    if ignore_compute_capability:
        return
    built_for = tf.sysconfig.get_build_info().get("cuda_compute_capabilities", ())
    for gpu in gpus:
        details = tf.config.experimental.get_device_details(gpu)
        capability = details.get("compute_capability")
        if capability and not has_code(capability, built_for):
            raise InputError(
                "this TensorFlow must have code for the GPU: install a build that has (NVIDIA's "
                "container images do for new GPUs), or give --device=cpu, or "
                "--ignore_compute_capability to try it all the same. Received: "
                f"{details.get('device_name', 'a GPU')} of compute capability "
                f"{'.'.join(map(str, capability))}, TensorFlow {tf.__version__} built for "
                f"{', '.join(built_for)}"
            )


def has_code(capability: tuple[int, int], built_for: Sequence[str]) -> bool:
    """Returns True if a build has code for a GPU of the capability (major, minor).

    CUDA binaries run on GPUs of the same major version and an equal or higher minor version, and
    with the suffix "a" only on the same version (CUDA C++ Programming Guide, "Binary
    Compatibility", "Architecture-Specific Features"). PTX ("compute_90") would run on any later
    GPU, but XLA's own code generator must know the GPU as well: TensorFlow 2.21's ends the
    process at 12.0. `built_for` is empty if the build does not list its versions.
    """
    versions = [re.fullmatch(r"(?:sm|compute)_(\d+)(\d)([a-z]?)", name) for name in built_for]
    known = [(int(v[1]), int(v[2]), v[3] == "a") for v in versions if v]
    major, minor = capability
    return not known or any(
        major == a and (minor == b or (minor > b and not exact)) for a, b, exact in known
    )


def machine_gpus() -> list[str]:
    """Returns the names of this machine's visible NVIDIA GPUs, whatever TensorFlow finds."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    # Schedulers write various words for "none"; a GPU is a number or a UUID like "GPU-...".
    if visible is not None and not re.match(r"\s*(\d|GPU-|MIG-)", visible):
        return []
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=SMI_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        # A container may have the device without nvidia-smi.
        return ["an NVIDIA GPU" for _ in Path("/dev").glob("nvidia[0-9]*")]
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]


def _why_not_found():
    """Explains why TensorFlow does not find the GPU, as the end of a sentence."""
    if not tf.test.is_built_with_cuda():
        return "this TensorFlow was built without CUDA: pip install 'tensorflow[and-cuda]'"
    if load_library(DRIVER) is None:
        return f"the driver's {DRIVER} cannot be loaded: is the driver installed, and visible here?"
    missing = [name for name in LIBRARIES if load_library(name) is None]
    if missing:
        return (
            f"{', '.join(missing)} cannot be loaded: install this project with the extra [gpu] "
            "(pip install -e '.[gpu]')"
        )
    return "TensorFlow lists none, although its libraries can be loaded: run nvidia-smi"


def load_library(library: str) -> ctypes.CDLL | None:
    """Loads a library, also from the packages that TensorFlow searches; None if that fails."""
    beside = Path(tf.__file__).parents[1].glob(f"nvidia/*/lib/{library}")
    for name in (library, *map(str, beside)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
