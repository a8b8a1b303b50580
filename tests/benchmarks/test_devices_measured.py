"""The speeds of devices: what is measured on a small model, what is shown of pretended answers."""

import re

import pytest
import tensorflow as tf

from benchmarks.common import parser_of
from benchmarks.speed.devices import __main__ as program
from benchmarks.speed.devices import tasks
from benchmarks.speed.devices.models import measure_model
from benchmarks.speed.devices.pipeline import measure_pipeline
from create_pretraining_data.instances.mask_processes import MaskProcesses
from tests.support.devices import GPU_MACHINE, pretended_runs


@pytest.mark.parametrize("count", (0, 1))
def test_the_pipeline_reads_its_random_records(count, monkeypatch):
    drawn = []
    draw_masks = MaskProcesses.draw_masks

    def recording(self, *arguments):
        drawn.append(self.count)
        return draw_masks(self, *arguments)

    monkeypatch.setattr(MaskProcesses, "draw_masks", recording)
    (task,) = tasks.pipeline_tasks(0)
    assert task["mask_processes"] == 0
    sizes = {"records": 64, "batch": 8, "seconds": 0.1}
    answer = measure_pipeline({**task, **sizes, "mask_processes": count})
    assert answer["result"] == "ok" and answer["rows_per_second"] > 0
    assert set(drawn) == ({1} if count else set())


@pytest.mark.slow
def test_a_model_on_one_and_on_two_devices():
    (task,) = tasks.model_tasks(0, ("tiny",), "float32", "off", None)
    (several,) = tasks.scaling_tasks(0, task, 4)
    cpus = len(tf.config.list_logical_devices("CPU"))
    for given, devices, rows in ((task, 1, 8), (several, cpus, 4)):
        answer = measure_model(given)
        assert (answer["result"], answer["devices"], answer["rows"]) == ("ok", devices, rows)
        rate, parts = devices * rows * answer["steps_per_second"], answer["parts"]
        assert answer["rows_per_second"] == pytest.approx(rate)
        timed = [parts[name] for name in ("forward and backward", "reduction", "update")]
        assert min(timed) > 0 and parts["idle"] == pytest.approx(parts["step"] - sum(timed))
        # No card, so no published peak.
        assert answer["utilisation"] is answer["peak_flops"] is None
        # Weights and two moments of 4.4 million: 53 MB.
        assert 52e6 < answer["checkpoint"]["bytes"] < 55e6


def answer(task):
    """What a machine of four A100 might say."""
    if task["kind"] == tasks.PRODUCT:
        return {"result": "ok", "speed": 2e14 if task["precision"] == "bfloat16" else 1e13}
    if task["kind"] == tasks.PIPELINE:
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


def main(flags):
    return program.main(parser_of(program.__doc__, program.FLAGS).parse_args(flags))


run = pretended_runs(program, answer, main)


def test_a_machine_with_gpus(run):
    _, out, report = run(GPU_MACHINE)
    assert "\nAll " in out
    trained = [row["task"] for row in report["models"]["results"]]
    assert [(t["size"], t["length"], t["precision"]) for t in trained] == [
        (size, length, "bfloat16") for size in ("base", "large") for length in (128, 512)
    ]
    assert {t["memory_mib"] for t in trained} == {81920}
    scaled = [row["answer"]["devices"] for row in report["scaling"]["results"]]
    assert scaled == [2, 4]
    for pattern in (
        r"(?m)^BERT-large, 512.* 41% .*40\.0 GiB \(44\.0\)",
        r"300 ms.* 50 ms.* 20 ms.*3 s, 1\.36 GB",
        r"1,234 rows/s.*BERT-base, 128 on 4 640",
    ):
        assert re.search(pattern, out), pattern


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
