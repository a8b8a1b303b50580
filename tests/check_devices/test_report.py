"""The report of check_devices, with pretended answers."""

import json

import pytest

from run_scripts.tools.check_devices import __main__ as program
from run_scripts.tools.check_devices import models, tasks

CPU_MACHINE = {
    "python": "3.11.9",
    "tensorflow": "2.21.0",
    "keras": "3.15.0",
    "built_for": None,
    "cpu": "Some CPU",
    "threads": 2,
    "bfloat16_instructions": [],
    "gpus": [],
    "nvidia_smi": {"gpus": None, "links": None, "cuda_of_driver": None, "topology": None,
                   "reason": "nvidia-smi is not installed, or not in PATH"},
    "libraries": {"libcuda.so.1": {"loaded": False, "version": None}},
}  # fmt: skip
GPU_MACHINE = {
    **CPU_MACHINE,
    "built_for": {"cuda_version": "12.5.1", "cudnn_version": "9"},
    "gpus": [{"name": "NVIDIA A100-SXM4-80GB", "compute_capability": "8.0"}] * 4,
    "nvidia_smi": {
        "gpus": [{"driver": "535.129.03", "memory_mib": "81920"}] * 4,
        "links": {"GPU0-GPU1": "NV12"}, "cuda_of_driver": "12.2", "topology": "", "reason": None,
    },
    "libraries": {"libnccl.so.2": {"loaded": False, "version": None}},
}  # fmt: skip


def answer(task):
    """What a machine of four A100 might say."""
    if task["kind"] == "check":
        return {"result": "ok", "difference": 1e-7}
    if task["kind"] == "product":
        return {"result": "ok", "speed": 2e14 if task["precision"] == "bfloat16" else 1e13}
    if task["kind"] == "pipeline":
        return {"result": "ok", "rows_per_second": 1234.0}
    devices = task["num_gpus"] or 1
    return {
        "result": "ok", "xla": "on", "rows": 64, "devices": devices, "steps_per_second": 2.5,
        "rows_per_second": 160.0 * devices, "flops": 1e11, "peak_flops": 312e12,
        "utilisation": 0.41, "memory": 40 * 2**30, "estimated_memory": 44 * 2**30,
        "parts": {"forward and backward": 0.3, "reduction": 0.05, "update": 0.03, "idle": 0.02,
                  "step": 0.4},
        "checkpoint": {"copy": 0.2, "write": 3.0, "bytes": 1.36e9},
    }  # fmt: skip


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Runs the program on a pretended machine: (status, output, report)."""

    def start(machine, *arguments, answer=answer):
        monkeypatch.setattr(program, "describe_machine", lambda: machine)
        monkeypatch.setattr(
            program,
            "run_groups",
            lambda groups, title: [(task, answer(task)) for group, _ in groups for task in group],
        )
        report = tmp_path / "report.json"
        status = program.main([*arguments, f"--report={report}"])
        return status, capsys.readouterr().out, json.loads(report.read_text(encoding="utf-8"))

    return start


def test_a_machine_with_gpus(run):
    status, out, report = run(GPU_MACHINE)
    assert status == 0
    assert "driver 535.129.03 (CUDA 12.2); links: GPU0-GPU1 NV12" in out
    assert "cannot be loaded: libnccl.so.2" in out
    trained = [row["task"] for row in report["models"]["results"]]
    assert [(t["size"], t["length"], t["precision"]) for t in trained] == [
        (size, length, "bfloat16") for size in ("base", "large") for length in (128, 512)
    ]
    assert {t["memory_mib"] for t in trained} == {81920}
    scaled = [row["answer"]["devices"] for row in report["scaling"]["results"]]
    assert scaled == [2, 4]
    row = next(line.split() for line in out.splitlines() if line.startswith("BERT-large, 512"))
    assert "41%" in row and "40.0" in row and "(44.0)" in row
    parts = next(line for line in out.splitlines() if "50 ms" in line)
    assert "300 ms" in parts and "20 ms" in parts and "3 s, 1.36 GB" in parts
    need = next(line for line in out.splitlines() if "1,234 rows/s" in line)
    assert "BERT-base, 128 on 4 640" in need
    assert report["gpu_reason"] is None


def test_a_machine_without(run):
    status, out, report = run(CPU_MACHINE)
    assert status == 0 and "GPU: none that TensorFlow sees" in out
    assert "nvidia-smi: nvidia-smi is not installed, or not in PATH" in out
    for name in ("models", "scaling", "pipeline"):
        assert report[name] == {"results": None, "reason": program.ON_CPU}
    assert report["gpu_reason"] == "TensorFlow sees no GPU"
    assert report["machine"] == CPU_MACHINE
    _, _, report = run(CPU_MACHINE, "--models=tiny")
    (row,) = report["models"]["results"]
    assert (row["task"]["size"], row["task"]["precision"]) == ("tiny", "bfloat16")
    (row,) = report["scaling"]["results"]
    assert row["task"]["strategy"] == "mirrored" and row["task"]["rows"] == 64


def test_what_fails_is_in_the_report_and_the_status(run):
    def failing(task):
        return {"result": "failed: no"} if task["kind"] == "model" else answer(task)

    status, out, report = run(GPU_MACHINE, answer=failing)
    assert status == 1 and out.endswith(" checks failed.\n")
    assert report["scaling"] == {"results": None, "reason": "no model could be trained"}
    results = [row["answer"] for row in report["models"]["results"]]
    assert results == [{"result": "failed: no"}] * 4


def test_one_gpu_does_not_scale(run):
    machine = {**GPU_MACHINE, "gpus": GPU_MACHINE["gpus"][:1]}
    _, _, report = run(machine, "--models=base")
    assert report["scaling"] == {"results": None, "reason": "there is one GPU"}


def test_a_report_that_cannot_be_written_is_noticed_first(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(program, "describe_machine", lambda: pytest.fail("too late"))
    assert program.main([f"--report={tmp_path}/none/report.json"]) == 1
    assert "--report must name a file in a folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    "speeds, chosen",
    (
        ((1, 100, 101), "bfloat16"),
        ((1, 100, 200), "float16"),
        ((1, 0, 100), "float16"),
        ((3, 2, 1), "float32"),
    ),
)
def test_the_precision_of_models(speeds, chosen):
    """bfloat16 also where float16 was faster by chance: only its peaks are known."""
    products = tasks.product_tasks(1)
    answers = [{"speed": speed} if speed else {"result": "failed: no"} for speed in speeds]
    pairs = list(zip(products, answers, strict=True))
    assert tasks.fastest_precision(1, pairs) == chosen


def test_unknown_models_are_refused(capsys):
    with pytest.raises(SystemExit):
        program.main(["--models=huge"])
    assert "Received: huge" in capsys.readouterr().err


def test_the_first_batch_fits_by_estimate():
    (task, _) = tasks.model_tasks(1, ("base",), "bfloat16", "auto", 81920.0)
    config = models.BertConfig.from_preset("base", vocab_size=models.VOCAB_SIZE)
    rows = models.first_rows(config, task)
    sizes = (task["length"], task["predictions"], "bfloat16")
    assert models.estimate_bytes(config, rows, *sizes) <= 0.9 * 81920 * 2**20
    assert models.estimate_bytes(config, rows + 8, *sizes) > 0.9 * 81920 * 2**20
    assert models.first_rows(config, {**task, "memory_mib": None}) == 32
