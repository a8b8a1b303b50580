"""What check_devices measures, on a small model."""

import pytest
import tensorflow as tf

from create_pretraining_data.instances.mask_processes import MaskProcesses
from run_scripts.tools.check_devices import tasks
from run_scripts.tools.check_devices.models import measure_model
from run_scripts.tools.check_devices.pipeline import measure_pipeline


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
    for given, devices, rows in ((task, 1, 8), (several, len(cpus()), 4)):
        answer = measure_model(given)
        assert (answer["result"], answer["devices"], answer["rows"]) == ("ok", devices, rows)
        assert answer["rows_per_second"] == pytest.approx(
            devices * rows * answer["steps_per_second"]
        )
        parts = answer["parts"]
        timed = ("forward and backward", "reduction", "update")
        assert all(parts[name] > 0 for name in timed)
        assert parts["idle"] == pytest.approx(parts["step"] - sum(map(parts.get, timed)))
        # No card, so no published peak.
        assert answer["utilisation"] is answer["peak_flops"] is None
        # Weights and two moments of 4.4 million: 53 MB.
        assert 52e6 < answer["checkpoint"]["bytes"] < 55e6


def cpus():
    return tf.config.list_logical_devices("CPU")
