"""The report of check_devices, with pretended answers."""

import pytest

from run_scripts.tools.check_devices import __main__ as program
from tests.support.devices import CPU_MACHINE, GPU_MACHINE, pretended_runs


def right(task):
    return {"result": "ok", "difference": 1e-7}


run = pretended_runs(program, right)


def test_a_machine_with_gpus(run):
    status, out, report = run(GPU_MACHINE)
    assert status == 0 and report["gpu_reason"] is None
    assert "driver 535.129.03 (CUDA 12.2); links: GPU0-GPU1 NV12" in out
    assert "cannot be loaded: libnccl.so.2" in out
    assert {row["task"]["device"] for row in report["checks"]["results"]} == {
        None, "GPU:0", "GPU:1", "GPU:2", "GPU:3",
    }  # fmt: skip


def test_a_machine_without(run):
    status, out, report = run(CPU_MACHINE, "--quick")
    assert status == 0 and "GPU: none that TensorFlow sees" in out
    assert "nvidia-smi: nvidia-smi is not installed, or not in PATH" in out
    assert report["gpu_reason"] == "TensorFlow sees no GPU"
    assert report["machine"] == CPU_MACHINE


def test_what_fails_is_in_the_report_and_the_status(run):
    status, out, report = run(GPU_MACHINE, answer=lambda task: {"result": "failed: no"})
    assert status == 1 and out.endswith(" checks failed.\n")
    assert {row["answer"]["result"] for row in report["checks"]["results"]} == {"failed: no"}


@pytest.mark.parametrize(
    "path, received",
    (
        ("none/report.json", "no folder {}/none\n"),
        ("", "{}/, a folder\n"),
        (".", "{}/., a folder\n"),
    ),
)
def test_a_report_that_cannot_be_written_is_noticed_first(
    monkeypatch, capsys, tmp_path, path, received
):
    monkeypatch.setattr(program, "describe_machine", lambda: pytest.fail("too late"))
    assert program.main([f"--report={tmp_path}/{path}"]) == 1
    expected = f"--report must name a file in a folder. Received: {received.format(tmp_path)}"
    assert capsys.readouterr().err == f"error: {expected}"


def test_where_models_are_trained_now(run):
    status, out, _ = run(CPU_MACHINE, "--models=base")
    assert status == 0 and "models are trained by python -m benchmarks.speed.devices" in out
