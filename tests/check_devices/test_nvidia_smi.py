"""What nvidia-smi says is read from several drivers' outputs."""

import stat
import sys

import pytest

from run_scripts.tools.check_devices import machine, nvidia_smi
from run_scripts.tools.check_devices.nvidia_smi import describe_gpus, parse_links

SUMMARY = """\
Sun Mar  3 10:00:00 2024
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
"""

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

FOUR_OVER_PCIE = (
    "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\n"
    "GPU0\t X \tPIX\tSYS\tSYS\t0-15\t0\n"
    "GPU1\tPIX\t X \tSYS\tSYS\t0-15\t0\n"
    "GPU2\tSYS\tSYS\t X \tPHB\t16-31\t1\n"
    "GPU3\tSYS\tSYS\tPHB\t X \t16-31\t1\n"
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
else:
    print({summary!r}, end="")
"""


def test_two_gpus(pretend):
    pretend(ANSWERS.format(gpus=TWO_A100, topology=TOPOLOGY, summary=SUMMARY))
    found = describe_gpus()
    assert found["reason"] is None
    assert found["cuda_of_driver"] == "12.2"
    assert found["links"] == {"GPU0-GPU1": "NV12"}
    assert "NIC0" in found["topology"] and "\x1b" not in found["topology"]
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


def test_links():
    assert parse_links(FOUR_OVER_PCIE) == {
        "GPU0-GPU1": "PIX", "GPU0-GPU2": "SYS", "GPU0-GPU3": "SYS",
        "GPU1-GPU2": "SYS", "GPU1-GPU3": "SYS", "GPU2-GPU3": "PHB",
    }  # fmt: skip
    assert parse_links("\tGPU0\tCPU Affinity\nGPU0\t X \t0-7\n") == {}
    assert parse_links("") == {}


def test_what_a_gpu_does_not_report_is_null(pretend):
    line = "0, NVIDIA GeForce RTX 3090, 535.54, 24576, 1, [N/A], 2100, 4, 16, [N/A], 8.6\n"
    pretend(ANSWERS.format(gpus=line, topology=FOUR_OVER_PCIE, summary="no version\n"))
    found = describe_gpus()
    (gpu,) = found["gpus"]
    assert gpu["power_limit_w"] is gpu["mig"] is found["cuda_of_driver"] is None
    assert gpu["compute_capability"] == "8.6"


def test_an_old_driver_that_does_not_know_all_fields(pretend):
    pretend("""
if "compute_cap" in asked:
    print('Field "compute_cap" is not a valid field to query.')
    sys.exit(2)
if asked == "topo -m":
    sys.exit("no topology")
print("0, Tesla V100-SXM2-16GB, 418.87, 16130, 0, 300.00, 1530, 3, 16")
""")
    found = describe_gpus()
    (gpu,) = found["gpus"]
    assert gpu["name"] == "Tesla V100-SXM2-16GB" and "compute_capability" not in gpu
    assert found["links"] is found["topology"] is None
    assert found["reason"] == "nvidia-smi topo -m ended with status 1: no topology"


NOTHING = {"gpus": None, "cuda_of_driver": None, "links": None, "topology": None}


def test_without_nvidia_smi(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = "nvidia-smi is not installed, or not in PATH"
    assert describe_gpus() == {**NOTHING, "reason": reason}


def test_a_driver_that_fails(pretend):
    pretend(
        'print("NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver.")\n'
        "sys.exit(9)"
    )
    found = describe_gpus()
    reason = found.pop("reason")
    assert found == NOTHING
    assert reason.endswith(
        "ended with status 9: NVIDIA-SMI has failed because it couldn't communicate with the "
        "NVIDIA driver."
    )


def test_a_driver_that_hangs(pretend, monkeypatch):
    monkeypatch.setattr(nvidia_smi, "SECONDS", 0.2)
    pretend("time.sleep(60)")
    found = describe_gpus()
    assert found["gpus"] is None and found["reason"].endswith("gave no answer within 0.2 s")


def test_versions_of_libraries():
    class Returns:
        class cudnnGetVersion:  # noqa: N801
            restype = None

            def __new__(cls):
                return 90300

    class Writes:
        @staticmethod
        def ncclGetVersion(pointer):  # noqa: N802
            pointer._obj.value = 22105
            return 0

    class Fails:
        @staticmethod
        def cudaRuntimeGetVersion(pointer):  # noqa: N802
            return 35

    assert machine.library_version(Returns, "libcudnn.so.9") == 90300
    assert machine.library_version(Writes, "libnccl.so.2") == 22105
    assert machine.library_version(Fails, "libcudart.so.12") is None
    assert machine.library_version(object(), "libcufft.so.11") is None
