"""Describes the CPU that this process runs on."""

import os
import platform
from pathlib import Path
from typing import NamedTuple

# Linux's names for the AVX-512 and AMX instructions that multiply bfloat16.
BFLOAT16_FLAGS = AVX512, AMX = "avx512_bf16", "amx_bf16"


class CPU(NamedTuple):
    """A CPU; the vendor is "" and the flags are empty if the system does not report them."""

    name: str
    vendor: str
    flags: frozenset[str]  # the names of its instructions and features

    def bfloat16_flags(self) -> tuple[str, ...]:
        """Returns the names of its instructions that multiply bfloat16."""
        return tuple(flag for flag in BFLOAT16_FLAGS if flag in self.flags)


def available_cores() -> int:
    """Returns the number of cores this process may use; all cores if the system does not say."""
    if hasattr(os, "sched_getaffinity"):  # Linux only
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def this_cpu(path: str | os.PathLike[str] = "/proc/cpuinfo") -> CPU:
    """Returns this machine's first CPU from a file in the format of Linux's proc_cpuinfo(5)."""
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        text = ""
    lines = [line.partition(":") for line in text.split("\n\n")[0].split("\n")]
    found = {name.strip(): value.strip() for name, _, value in lines}
    return CPU(
        found.get("model name") or platform.processor() or platform.machine(),
        found.get("vendor_id", ""),
        frozenset(found.get("flags", "").split()),
    )
