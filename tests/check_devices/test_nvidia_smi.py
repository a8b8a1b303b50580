"""What nvidia-smi says is read from its outputs."""

import stat
import sys

import pytest

from run_scripts.tools.check_devices import nvidia_smi
from run_scripts.tools.check_devices.nvidia_smi import describe_gpus

TWO_A100 = (
    "0, NVIDIA A100-SXM4-80GB, 535.129.03, 81920, 4, 400.00, 1410, 4, 16, Disabled, 8.0\n"
    "1, NVIDIA A100-SXM4-80GB, 535.129.03, 81920, 0, 400.00, 1410, 4, 16, Disabled, 8.0\n"
)

# With the underlined headings that it prints on a terminal, and in pipes too.
TOPOLOGY = (
    "\t\x1b[4mGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV12\tPXB\t0-31,64-95\t0\t\tN/A\n"
    "GPU1\tNV12\t X \tSYS\t0-31,64-95\t0\t\tN/A\n"
    "NIC0\tPXB\tSYS\t X \t\t\t\t\n\n"
    "Legend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
)


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Puts an nvidia-smi in front of PATH; its body is Python, with the arguments in `asked`."""

    def put(body):
        path = tmp_path / "nvidia-smi"
        path.write_text(
            f"#!{sys.executable}\nimport sys, time\nasked = ' '.join(sys.argv[1:])\n{body}\n"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", str(tmp_path))

    return put


ANSWERS = """
if asked.startswith("--query-gpu="):
    print({gpus!r}, end="")
elif asked == "topo -m":
    print({topology!r}, end="")
"""


def test_two_gpus(pretend):
    pretend(ANSWERS.format(gpus=TWO_A100, topology=TOPOLOGY))
    found = describe_gpus()
    assert found["reason"] is None
    assert "NV12" in found["topology"] and "\x1b" not in found["topology"]
    first, second = found["gpus"]
    assert first == {
        "index": "0",
        "name": "NVIDIA A100-SXM4-80GB",
        "driver": "535.129.03",
        "memory_mib": "81920",
        "memory_used_mib": "4",
        "power_limit_w": "400.00",
        "highest_clock_mhz": "1410",
        "pcie_generation": "4",
        "pcie_lanes": "16",
        "mig": "Disabled",
        "compute_capability": "8.0",
    }
    assert second == {**first, "index": "1", "memory_used_mib": "0"}


def test_what_a_gpu_does_not_report_is_null(pretend):
    line = "0, NVIDIA GeForce RTX 3090, 535.54, 24576, 1, [N/A], 2100, 4, 16, [N/A], 8.6\n"
    pretend(ANSWERS.format(gpus=line, topology=TOPOLOGY))
    (gpu,) = describe_gpus()["gpus"]
    assert gpu["power_limit_w"] is gpu["mig"] is None
    assert gpu["compute_capability"] == "8.6"


def test_a_machine_without_topology(pretend):
    pretend(f"""
if asked == "topo -m":
    sys.exit("no topology")
print({TWO_A100!r}, end="")
""")
    found = describe_gpus()
    assert len(found["gpus"]) == 2 and found["topology"] is None
    assert found["reason"] == "nvidia-smi topo -m ended with status 1: no topology"


FAILED = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


@pytest.mark.parametrize(
    "body, seconds, reason",
    (
        (None, 30, "nvidia-smi is not installed, or not in PATH"),
        (f"print({FAILED!r})\nsys.exit(9)", 30, f"ended with status 9: {FAILED}"),
        ("time.sleep(60)", 0.2, "gave no answer within 0.2 s"),
    ),
    ids=("no program", "a driver that fails", "a driver that hangs"),
)
def test_what_does_not_answer(pretend, monkeypatch, tmp_path, body, seconds, reason):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(nvidia_smi, "SECONDS", seconds)
    if body:
        pretend(body)
    found = describe_gpus()
    assert found.pop("reason").endswith(reason)
    assert found == {"gpus": None, "topology": None}
