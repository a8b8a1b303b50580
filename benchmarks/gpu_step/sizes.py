"""Prints the cost of a training step, as far as it is known without running the step."""

import os

import jax

from benchmarks.common import print_table
from benchmarks.gpu_step.runtime import (
    compile_text,
    compile_without_device,
    compiled_memory,
    counted_flops,
    read_description,
    read_text,
)

FLOAT32_BYTES = 4
HEADINGS = [
    "program", "weights", "GFLOP a step", "as XLA counts", "gradients, slots GiB", "update GiB",
    "estimate GiB",
]  # fmt: skip

# An H100 for compiling without one, XLA's `GpuTargetConfigProto` as text. The numbers are from the
# CUDA programming guide for compute capability 9.0 and from NVIDIA's H100 whitepaper.
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: 232448
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  thread_dim_limit_x: 1024
  thread_dim_limit_y: 1024
  thread_dim_limit_z: 64
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  memory_bandwidth: 3352000000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 80000000000
  device_address_bits: 64
  cuda_compute_capability { major: 9 }
  device_vendor: "NVIDIA Corporation"
  name: "NVIDIA H100 80GB HBM3"
  driver_version: "13.0.0"
  runtime_version: "12.8.0"
  compile_time_toolkit_version: "12.8.0"
  dnn_version: "9.10.0"
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""


def print_sizes(folder, target):
    """Prints the cost of every program in a folder.

    Args:
        folder: a folder of programs, or of one program.
        target: "h100" to compile with JAX's CUDA plugin for a card that this machine need not
            have; "here" for JAX's first device.
    """
    print_table(HEADINGS, rows(program_folders(folder), target))


def rows(folders, target):
    """Yields the table row of each program."""
    for path in folders:
        description = read_description(path)
        texts = {name: read_text(path, name) for name in ("gradients", "update")}
        planned = {name: planned_bytes(text, target) for name, text in texts.items()}
        # The slots are in memory during the gradients too; the update takes all as arguments.
        slots = FLOAT32_BYTES * len(description["slots"]) * description["weights"]
        sizes = planned["gradients"] + slots, planned["update"], description["estimated_bytes"]
        yield [
            os.path.basename(os.path.normpath(path)), f"{description['weights']:,}",
            f"{description['flops'] / 1e9:,.0f}",
            f"{counted_flops(texts['gradients']) / 1e9:,.0f}",
            *(f"{size / 2**30:.2f}" for size in sizes),
        ]  # fmt: skip


def planned_bytes(text, target):
    """Returns the bytes of memory that XLA plans for a program."""
    if target == "here":
        executable = compile_text(text, jax.devices()[0])
    else:
        executable = compile_without_device(text, H100)
    return sum(compiled_memory(executable).values())


def program_folders(folder):
    """Returns the folders of programs in a folder, or the folder itself if it is a program's."""
    if os.path.exists(os.path.join(folder, "program.json")):
        return [folder]
    inside = sorted(os.path.join(folder, name) for name in os.listdir(folder))
    found = [path for path in inside if os.path.exists(os.path.join(path, "program.json"))]
    if not found:
        raise SystemExit(f"error: {folder} must hold programs that export wrote")
    return found
