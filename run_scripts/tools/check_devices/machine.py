"""Describes the machine that is checked."""

import os
import platform
from collections.abc import Mapping
from typing import Any

from bert_common.cpu import this_cpu
from bert_common.import_tensorflow import import_tensorflow
from run_scripts.tools.check_devices.nvidia_smi import describe_gpus


def describe_machine() -> dict[str, Any]:
    """Describes this machine, as an engineer would ask about it, for the report.

    Returns:
        A dict: "python", "system", "tensorflow", "keras", "built_for" (CUDA, cuDNN and the
        capabilities that TensorFlow has code for; None in a build for CPUs), "cpu", "threads",
        "memory_gib", "bfloat16_instructions", "gpus" (those that TensorFlow sees), "nvidia_smi" and
        "libraries".
    """
    tf = import_tensorflow()
    import keras

    build = tf.sysconfig.get_build_info()
    names = ("cuda_version", "cudnn_version", "cuda_compute_capabilities")
    cpu = this_cpu()
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
        "built_for": {key: build[key] for key in names if key in build} or None,
        "cpu": cpu.name,
        "threads": os.cpu_count(),
        "memory_gib": memory_gib(),
        "bfloat16_instructions": list(cpu.bfloat16_flags()),
        "gpus": [describe_gpu(tf, gpu) for gpu in tf.config.list_physical_devices("GPU")],
        "nvidia_smi": describe_gpus(),
        "libraries": loadable_libraries(),
    }


def describe_gpu(tf: Any, gpu: Any) -> dict[str, Any]:
    """Returns the name and the compute capability of a GPU that TensorFlow sees."""
    details = tf.config.experimental.get_device_details(gpu)
    capability = details.get("compute_capability")
    return {
        "name": details.get("device_name"),
        "compute_capability": ".".join(map(str, capability)) if capability else None,
    }


def loadable_libraries() -> dict[str, bool]:
    """Returns NVIDIA library -> whether it can be loaded."""
    from bert_tf.training.gpus import DRIVER, LIBRARIES, load_library

    return {name: load_library(name) is not None for name in (DRIVER, *LIBRARIES)}


def memory_gib() -> float | None:
    """Returns the machine's memory in GiB, or None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (OSError, ValueError):
        return None


def print_machine(machine: Mapping[str, Any]) -> None:
    """Prints what `describe_machine` returned."""
    built = machine["built_for"] or {}
    cuda = ", ".join(
        f"{label} {built[key]}"
        for label, key in (("CUDA", "cuda_version"), ("cuDNN", "cudnn_version"))
        if key in built
    )
    print(
        f"Python {machine['python']}, TensorFlow {machine['tensorflow']} "
        f"(built for {cuda or 'CPUs only'}), Keras {machine['keras']}"
    )
    instructions = ", ".join(machine["bfloat16_instructions"]) or "none"
    print(
        f"CPU: {machine['cpu']}, {machine['threads']} threads; "
        f"instructions for bfloat16: {instructions}"
    )
    for i, gpu in enumerate(machine["gpus"]):
        print(f"GPU:{i}: {gpu['name']}, compute capability {gpu['compute_capability']}")
    if not machine["gpus"]:
        print("GPU: none that TensorFlow sees")
    smi = machine["nvidia_smi"]
    if smi["gpus"]:
        print(f"driver: {smi['gpus'][0]['driver']}")
    if smi["reason"]:
        print(f"nvidia-smi: {smi['reason']}")
    missing = [name for name, is_loaded in machine["libraries"].items() if not is_loaded]
    if missing and (machine["gpus"] or smi["gpus"]):
        print(f"cannot be loaded: {', '.join(missing)}")
