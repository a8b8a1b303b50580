"""An H100 as a target of XLA."""

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
