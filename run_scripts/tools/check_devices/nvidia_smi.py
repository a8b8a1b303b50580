"""Reads what nvidia-smi reports about the machine."""

import re
import subprocess
from typing import Any

COMMAND = "nvidia-smi"

# nvidia-smi answers within a second, or perhaps never on a machine with a broken driver.
SECONDS = 30

# Fields of --query-gpu -> names in the report.
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


def describe_gpus() -> dict[str, Any]:
    """Reads what nvidia-smi reports about the GPUs, for the report.

    Returns:
        A dict: "gpus", a list of dicts with the values of `FIELDS` as strings, None for what a GPU
        does not report; "topology", the table of the links between GPUs. Each is None if nvidia-smi
        gives no answer; "reason" then says why and is None otherwise.
    """
    listed, reason = ask(f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
    if listed is None:
        return {"gpus": None, "topology": None, "reason": reason}
    topology, reason = ask("topo", "-m")
    return {"gpus": parse_gpus(listed), "topology": topology, "reason": reason}


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


def parse_gpus(text: str) -> list[dict[str, str | None]]:
    """Parses the output of --query-gpu without header and units: a dict for each GPU."""
    gpus = []
    for line in text.splitlines():
        values = [value.strip() for value in line.split(",")]
        if len(values) != len(FIELDS):
            continue
        known = [None if re.fullmatch(r"\[.*\]|N/A", value) else value for value in values]
        gpus.append(dict(zip(FIELDS.values(), known, strict=True)))
    return gpus
