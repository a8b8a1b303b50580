"""What graphics cards can do: their peaks for the share that is used, one as a target of XLA."""

import re

TERA = 1e12

# A pattern of the names that drivers give -> dense operations per second (without sparsity) of the
# matrix units: in bfloat16 with float32 sums, and in TF32, which TensorFlow and JAX use for float32
# products; the source. The first pattern that matches counts.
PEAKS = (
    (r"\bB200", 2250, 1100, "NVIDIA DGX B200 datasheet, 72 PFLOPS sparse FP8 of 8 GPUs / 4"),
    (r"H200", 989, 494, "NVIDIA H200 datasheet, sparse figures / 2"),
    (r"H100.*PCIe", 756, 378, "NVIDIA H100 datasheet (2022), PCIe, sparse figures / 2"),
    (r"H100.*NVL", 835, 417, "NVIDIA H100 NVL datasheet, sparse figures / 2"),
    (r"H100|GH200", 989, 494, "NVIDIA H100 datasheet, SXM, sparse figures / 2"),
    (r"A100", 312, 156, "NVIDIA A100 datasheet"),
    (r"L40S", 362, 183, "NVIDIA L40S datasheet"),
    (r"L4\b", 121, 60, "NVIDIA L4 datasheet, sparse figures / 2"),
    (r"A10\b", 125, 62.5, "NVIDIA A10 datasheet"),
    (r"RTX 4090", 165.2, 82.6, "NVIDIA Ada GPU architecture whitepaper, appendix A"),
    (r"RTX 3090", 71, 35.6, "NVIDIA GA102 GPU architecture whitepaper, table 2"),
)  # fmt: skip

# Versions of these cards with other chips, and parts of one.
OTHER_CHIPS = r"\b(Laptop|Ti|Max|D|MIG)\b"

# One H100 for programs that are compiled without it: numbers of the CUDA programming guide for
# compute capability 9.0 and of NVIDIA's H100 whitepaper, under the names of XLA's
# GpuTargetConfigProto.
H100 = {
    "threads_per_block_limit": 1024,
    "threads_per_warp": 32,
    "shared_memory_per_block": 48 * 1024,
    "shared_memory_per_block_optin": 227 * 1024,
    "shared_memory_per_core": 228 * 1024,
    "threads_per_core_limit": 2048,
    "core_count": 132,
    "fpus_per_core": 128,
    "block_dim_limit_x": 2**31 - 1,
    "block_dim_limit_y": 65535,
    "block_dim_limit_z": 65535,
    "thread_dim_limit_x": 1024,
    "thread_dim_limit_y": 1024,
    "thread_dim_limit_z": 64,
    "registers_per_core_limit": 65536,
    "registers_per_block_limit": 65536,
    "memory_bandwidth": 3_352_000_000_000,
    "l2_cache_size": 50 * 2**20,
    "clock_rate_ghz": 1.98,
    "device_memory_size": 80 * 10**9,
    "device_address_bits": 64,
    "cuda_compute_capability": {"major": 9},
    "device_vendor": "NVIDIA Corporation",
    "name": "NVIDIA H100 80GB HBM3",
    "driver_version": "13.0.0",
    "runtime_version": "12.8.0",
    "compile_time_toolkit_version": "12.8.0",
    "dnn_version": "9.10.0",
}


def peak_flops(device_kind, precision):
    """A card's peak in operations per second, and its source; None and "" if it is not listed.

    Args:
        device_kind: the name that the driver gives it.
        precision: "float32" or "bfloat16".
    """
    if re.search(OTHER_CHIPS, device_kind):
        return None, ""
    for pattern, bfloat16, tf32, source in PEAKS:
        if re.search(pattern, device_kind):
            return TERA * (bfloat16 if precision == "bfloat16" else tf32), source
    return None, ""


def target_config(card=H100):
    """A card as XLA's `GpuTargetConfigProto`, in text form."""
    return "\n".join(
        (
            "gpu_device_info {",
            *_fields(card),
            "}",
            'platform_name: "CUDA"',
            "dnn_version_info { major: 9 minor: 10 }",
            f'device_description_str: "{card["name"]}"',
        )
    )


def _fields(values):
    for name, value in values.items():
        if isinstance(value, dict):
            yield f"{name} {{ {' '.join(_fields(value))} }}"
        else:
            yield f'{name}: "{value}"' if isinstance(value, str) else f"{name}: {value}"
