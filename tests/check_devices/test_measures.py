"""What check_devices measures: a small model on one and on two devices, the input pipeline."""

import pytest
import tensorflow as tf

from run_scripts.tools.check_devices import tasks
from run_scripts.tools.check_devices.models import measure_model
from run_scripts.tools.check_devices.pipeline import measure_pipeline


def test_the_pipeline_reads_its_random_records():
    (task,) = tasks.pipeline_tasks(0)
    answer = measure_pipeline({**task, "records": 64, "batch": 8, "seconds": 0.1})
    assert answer["result"] == "ok" and answer["rows_per_second"] > 0


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
