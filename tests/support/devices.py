"""Machines as `describe_machine` describes them; programs that pretend to run on one."""

import json

import pytest


def pretended_runs(program, default_answer, main):
    """A fixture that runs a program on a pretended machine: (status, printed, report).

    `main` is called with the flags, a list.
    """

    @pytest.fixture
    def run(monkeypatch, capsys, tmp_path):
        def start(machine, *arguments, answer=default_answer):
            monkeypatch.setattr(program, "describe_machine", lambda: machine)
            monkeypatch.setattr(
                program,
                "run_groups",
                lambda groups, title: [(t, answer(t)) for group, _ in groups for t in group],
            )
            report = tmp_path / "report.json"
            status = main([*arguments, f"--report={report}"])
            printed = capsys.readouterr()
            return status, printed.out + printed.err, json.loads(report.read_text("utf-8"))

        return start

    return run


CPU_MACHINE = {
    "python": "3.11.9",
    "tensorflow": "2.21.0",
    "keras": "3.15.0",
    "built_for": None,
    "cpu": "Some CPU",
    "threads": 2,
    "bfloat16_instructions": [],
    "gpus": [],
    "nvidia_smi": {"gpus": None, "topology": None,
                   "reason": "nvidia-smi is not installed, or not in PATH"},
    "libraries": {"libcuda.so.1": False},
}  # fmt: skip
GPU_MACHINE = {
    **CPU_MACHINE,
    "built_for": {"cuda_version": "12.5.1", "cudnn_version": "9"},
    "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}] * 4,
    "nvidia_smi": {
        "gpus": [{"driver": "535.129.03", "memory_mib": "81920"}] * 4,
        "topology": "", "reason": None,
    },
    "libraries": {"libnccl.so.2": False},
}  # fmt: skip
