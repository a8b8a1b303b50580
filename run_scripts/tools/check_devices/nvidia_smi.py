"""Reads what nvidia-smi reports about the machine."""

import re
import subprocess
from collections.abc import Sequence
from typing import Any

COMMAND = "nvidia-smi"

# nvidia-smi answers within a second, or perhaps never on a machine with a broken driver.
SECONDS = 30

# Fields of --query-gpu -> names in the report. Drivers before 470 do not know the last two fields
# and reject the whole query because of them.
FIELDS = {
    "index": "index",
    "name": "name",
    "driver_version": "driver",
    "memory.total": "memory_mib",
    "memory.used": "memory_used_mib",
    "power.limit": "power_limit_w",
    "clocks.max.sm": "highest_clock_mhz",
    "pcie.link.gen.max": "pcie_generation",
    "pcie.link.width.max": "pcie_lanes",
    "mig.mode.current": "mig",
    "compute_cap": "compute_capability",
}
OLD_FIELDS = tuple(FIELDS)[:9]


def describe_gpus() -> dict[str, Any]:
    """Reads what nvidia-smi reports about the GPUs, for the report.

    Returns:
        A dict: "gpus", a list of dicts with the values of `FIELDS` as strings, None for what a GPU
        does not report; "cuda_of_driver", the newest CUDA that the driver supports; "links", a dict
        such as "GPU0-GPU1" -> "NV12"; "topology", the table they are from. Each is None if
        nvidia-smi gives no answer; "reason" then says why and is None otherwise.
    """
    listed, reason = ask(f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
    fields = tuple(FIELDS)
    if listed is None and "not a valid field" in (reason or ""):
        fields = OLD_FIELDS
        listed, reason = ask(f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
    if listed is None:
        return {
            "gpus": None, "cuda_of_driver": None, "links": None, "topology": None, "reason": reason,
        }  # fmt: skip
    summary, _ = ask()
    version = re.search(r"CUDA Version:\s*([\d.]+)", summary or "")
    topology, no_topology = ask("topo", "-m")
    return {
        "gpus": parse_gpus(listed, fields),
        "cuda_of_driver": version[1] if version else None,
        "links": None if topology is None else parse_links(topology),
        "topology": topology,
        "reason": no_topology,
    }


def ask(*arguments: str) -> tuple[str | None, str | None]:
    """Returns the output of nvidia-smi and None, or None and the reason."""
    shown = " ".join([COMMAND, *arguments])
    try:
        answer = subprocess.run(
            [COMMAND, *arguments], capture_output=True, text=True, timeout=SECONDS, errors="replace"
        )
    except FileNotFoundError:
        return None, f"{COMMAND} is not installed, or not in PATH"
    except subprocess.TimeoutExpired:
        return None, f"{shown} gave no answer within {SECONDS} s"
    except OSError as error:
        return None, f"{shown} cannot be run: {error.strerror}"
    if answer.returncode:
        said = " ".join((answer.stdout + answer.stderr).split())[:200]
        return None, f"{shown} ended with status {answer.returncode}: {said}"
    # Without the escape sequences of terminals, which topo prints for underlined headings.
    return re.sub(r"\x1b\[[\d;]*m", "", answer.stdout), None


def parse_gpus(text: str, fields: Sequence[str]) -> list[dict[str, str | None]]:
    """Parses the output of --query-gpu without header and units: a dict for each GPU."""
    gpus = []
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) != len(fields):
            continue
        known = [None if re.fullmatch(r"\[.*\]|N/A", value) else value for value in values]
        gpus.append(dict(zip([FIELDS[field] for field in fields], known, strict=True)))
    return gpus


def parse_links(text: str) -> dict[str, str]:
    """Parses the links between GPUs in the table of `topo -m`, such as {"GPU0-GPU1": "NV12"}.

    NV12 means twelve NVLinks; PIX, PXB, PHB, NODE and SYS are ever longer paths over PCIe.
    """
    lines = [re.split(r"\s*\t\s*", line.strip()) for line in text.splitlines() if line.strip()]
    header = next((cells for cells in lines if cells[0] == "GPU0" and "X" not in cells), [])
    links = {}
    for cells in lines:
        if not re.fullmatch(r"GPU\d+", cells[0]) or "X" not in cells:
            continue
        for other, link in zip(header, cells[1:], strict=False):
            # The table is symmetrical; devices other than GPUs do not compute.
            if re.fullmatch(r"GPU\d+", other) and int(other[3:]) > int(cells[0][3:]):
                links[f"{cells[0]}-{other}"] = link
    return links
