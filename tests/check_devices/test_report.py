"""The report of check_devices, with pretended answers."""

import pytest

from run_scripts.tools.check_devices import __main__ as program
from tests.support.devices import CPU_MACHINE, GPU_MACHINE, pretended_runs


def right(task):
    return {"result": "ok", "difference": 1e-7}


def main(flags):
    # The first two have no effect any more; command lines with them must still work.
    return program.main(["check_devices", "--quick", "--models=bert_base", *flags])


run = pretended_runs(program, right, main)


def test_a_machine_with_gpus(run):
    status, out, report = run(GPU_MACHINE)
    assert status == 0 and report["gpu_reason"] is None
    assert "driver: 535.129.03" in out
    assert "cannot be loaded: libnccl.so.2" in out
    assert {row["task"]["device"] for row in report["checks"]["results"]} == {
        None, "GPU:0", "GPU:1", "GPU:2", "GPU:3",
    }  # fmt: skip


def test_a_machine_without(run):
    status, out, report = run(CPU_MACHINE)
    assert status == 0 and "GPU: none that TensorFlow sees" in out
    assert "nvidia-smi: nvidia-smi is not installed, or not in PATH" in out
    assert report["gpu_reason"] == "TensorFlow sees no GPU"
    assert report["machine"] == CPU_MACHINE


def test_what_fails_is_in_the_report_and_the_status(run):
    status, out, report = run(GPU_MACHINE, answer=lambda task: {"result": "failed: no"})
    count = len(report["checks"]["results"])
    assert status == 1
    assert out.endswith(f"error: all checks must pass. Received: {count} of {count} failed\n")
    assert {row["answer"]["result"] for row in report["checks"]["results"]} == {"failed: no"}


@pytest.mark.parametrize(
    "path, message",
    (
        ("folder", "must be a file. Received: {}, a folder"),
        ("file/report.json", "must be in a folder that can be written. Received: {} (File exists)"),
    ),
)
def test_a_report_that_cannot_be_written_is_noticed_first(
    monkeypatch, capsys, tmp_path, path, message
):
    monkeypatch.setattr(program, "describe_machine", lambda: pytest.fail("too late"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    assert main([f"--report={tmp_path}/{path}"]) == 1
    there = tmp_path / path.split("/")[0]
    assert capsys.readouterr().err == f"error: --report {message.format(there)}\n"
