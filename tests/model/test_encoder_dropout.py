"""--encoder_dropout trains as a configuration with that rate would."""

import json

import numpy as np
import pytest

from tests.support.programs import DROPOUT, NO_DROPOUT, ClassifierJob, PretrainingJob, arrays
from tests.support.task_data import write_splits

ROWS = [(word, i % 2) for i in range(8) for word in ("가", "나")]


def pretraining(folder, rates):
    return PretrainingJob(folder, **rates)


def classification(folder, rates):
    job = ClassifierJob(folder, **rates)
    write_splits(job.data, ("text", "label"), ROWS, train=(0, 16))
    return job


JOBS = {
    "pre-training": (pretraining, {"num_train_steps": 2}),
    "fine-tuning": (classification, {"train_step": 2, "classifier_dropout": 0}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", JOBS)
def test_the_rate_of_the_flag(kind, tmp_path):
    """The same weights as with the configuration's rate, which the folder keeps."""
    make_job, flags = JOBS[kind]

    def trained(name, rates, **more):
        (tmp_path / name).mkdir()
        job = make_job(tmp_path / name, rates)
        assert job.run(**flags, **more) == 0
        config = json.loads((job.output / "bert_config.json").read_text())
        assert {key: config[key] for key in rates} == rates
        return arrays(job.output, step=2)

    without, with_it = trained("without", NO_DROPOUT), trained("with", DROPOUT)
    for name, found in trained("to 0", DROPOUT, encoder_dropout=0).items():
        np.testing.assert_array_equal(found, without[name], err_msg=name)
    for name, found in trained("to 0.1", NO_DROPOUT, encoder_dropout=0.1).items():
        np.testing.assert_array_equal(found, with_it[name], err_msg=name)
    word_rows = next(name for name in with_it if name.endswith("word_embeddings"))
    assert np.abs(with_it[word_rows] - without[word_rows]).max() > 1e-6
