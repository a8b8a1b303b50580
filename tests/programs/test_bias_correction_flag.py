"""--bias_correction reaches the optimizer of pre-training and of fine-tuning, and is recorded."""

import numpy as np
import pytest

from model_formats.model_folder import ModelFolder
from tests.support.programs import ClassifierJob, PretrainingJob, arrays
from tests.support.task_data import single_rows, write_splits

RATE, BIAS = 0.003, "bert/encoder/layer_0/intermediate/dense/bias"


def make(job_class, folder):
    """The job with the flags for one update at a rate of `RATE`, times what is left of it."""
    job = job_class(folder)
    flags = {"learning_rate": RATE, "random_seed": 7}
    if job_class is PretrainingJob:
        return job, {**flags, "num_train_steps": 1, "num_warmup_steps": 0}
    write_splits(job.data, ["text", "label"], single_rows(16), train=(0, 16))
    return job, {**flags, "train_step": 1, "warmup_step": 0}


@pytest.mark.parametrize("job_class", (PretrainingJob, ClassifierJob))
def test_first_update(job_class, tmp_path):
    job, flags = make(job_class, tmp_path)
    found = []
    for corrects in (False, True):
        output = tmp_path / f"corrects-{corrects}"
        assert job.run(**flags, output_dir=output, bias_correction=corrects) == 0
        assert ModelFolder(str(output)).stages[-1]["settings"]["bias_correction"] is corrects
        found.append(arrays(output, 1))
    plain, corrected = found
    for slot in ("adam_m", "adam_v"):
        np.testing.assert_array_equal(plain[f"{BIAS}/{slot}"], corrected[f"{BIAS}/{slot}"])
    first, second = (plain[f"{BIAS}/{slot}"].astype(np.float64) for slot in ("adam_m", "adam_v"))
    updates = (first * s / (np.sqrt(second * r) + 1e-6) for s, r in ((1, 1), (10, 1000)))
    difference = RATE * np.subtract(*updates)
    assert np.abs(difference).max() > RATE / 10
    np.testing.assert_allclose(corrected[BIAS] - plain[BIAS], difference, rtol=0, atol=1e-7)

    # A run that is resumed may change it, as it may change the optimizer.
    name = "num_train_steps" if job_class is PretrainingJob else "train_step"
    assert job.run(**{**flags, name: 2}, output_dir=tmp_path / "corrects-False",
                   bias_correction=True) == 0  # fmt: skip
