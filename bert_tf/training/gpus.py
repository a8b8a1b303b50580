"""Refuses GPUs that TensorFlow cannot use: it would train on the CPU instead, or crash."""

import ctypes
import os
import re
import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

from bert_common.errors import InputError

# What TensorFlow for CUDA 12 loads: the driver's, and what comes with the extra "gpu".
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

# nvidia-smi answers within a second; on a machine with a broken driver perhaps never.
SMI_SECONDS = 30


def check_gpus(ignore_compute_capability: bool = False) -> None:
    """Refuses GPUs of this machine that TensorFlow does not find or has no code for; or returns.

    A machine whose GPUs CUDA_VISIBLE_DEVICES hides has none. `ignore_compute_capability` tries GPUs
    that this TensorFlow was not built for.
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
    """Whether a build has code for a GPU of this capability: (major, minor).

    CUDA's binaries run on GPUs of the same major version and an equal or higher minor version,
    those with the suffix "a" on no other version (CUDA C++ Programming Guide, "Binary
    Compatibility", "Architecture-Specific Features"). PTX ("compute_90") would run on any later
    GPU, but XLA's own code generator must know the GPU as well: TensorFlow 2.21's ends the
    process at 12.0. `built_for` is empty if the build does not say.
    """
    versions = [re.fullmatch(r"(?:sm|compute)_(\d+)(\d)([a-z]?)", name) for name in built_for]
    known = [(int(v[1]), int(v[2]), v[3] == "a") for v in versions if v]
    major, minor = capability
    return not known or any(
        major == a and (minor == b or (minor > b and not exact)) for a, b, exact in known
    )


def machine_gpus() -> list[str]:
    """The names of this machine's NVIDIA GPUs that a program may use, whatever TensorFlow finds."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    # Schedulers write several words for "none"; a GPU has a number, or a UUID that begins "GPU-".
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
    """Explains what keeps TensorFlow from the GPU, for the end of a sentence."""
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
    """Loads a library, from the packages that TensorFlow searches too; None if that fails."""
    beside = Path(tf.__file__).parents[1].glob(f"nvidia/*/lib/{library}")
    for name in (library, *map(str, beside)):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
