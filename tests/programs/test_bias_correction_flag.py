"""--bias_correction reaches the optimizer of pre-training and of fine-tuning, and is recorded."""

import numpy as np
import pytest

from model_formats.model_folder import ModelFolder
from tests.support.programs import NO_DROPOUT, ClassifierJob, PretrainingJob, arrays
from tests.support.task_data import single_rows, write_splits
from tests.support.tiny_models import SIZES

RATE, BIAS = 0.003, "bert/encoder/layer_0/intermediate/dense/bias"
SLOTS = ("adam_m", "adam_v")


def make(job_class, folder):
    """The job, its flags, and the flag that says how many updates it makes."""
    job = job_class(folder, **NO_DROPOUT)
    flags = {"learning_rate": RATE, "random_seed": 7}
    if job_class is PretrainingJob:
        return job, {**flags, "num_warmup_steps": 0}, "num_train_steps"
    write_splits(job.data, ["text", "label"], single_rows(16), train=(0, 16))
    return job, {**flags, "warmup_step": 0}, "train_step"


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("job_class", (PretrainingJob, ClassifierJob))
def test_two_updates(job_class, tmp_path):
    """The first with it; a run that is resumed may change it, as it may change the optimizer."""
    job, flags, steps = make(job_class, tmp_path)
    before = np.zeros(SIZES["intermediate_size"])  # a bias, which does not decay
    for number, corrects in ((1, True), (2, False)):
        assert job.run(**flags, **{steps: number}, bias_correction=corrects) == 0
        settings = ModelFolder(str(job.output)).stages[-1]["settings"]
        assert settings["bias_correction"] is corrects
        found = arrays(job.output, number)
        first, second = (found[f"{BIAS}/{slot}"].astype(np.float64) for slot in SLOTS)
        if corrects:  # 1 - 0.9, 1 - 0.999
            first, second = first / 0.1, second / 0.001
        # The rate falls to zero: half of it is left for the second of two updates.
        update = RATE / number * first / (np.sqrt(second) + 1e-6)
        assert np.abs(update).max() > RATE / 10
        np.testing.assert_allclose(before - found[BIAS], update, rtol=0, atol=1e-7)
        before = found[BIAS]
