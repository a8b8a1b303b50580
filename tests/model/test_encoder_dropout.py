"""--encoder_dropout trains as a configuration with that rate would."""

import json

import numpy as np
import pytest

from tests.support.programs import DROPOUT, NO_DROPOUT, ClassifierJob, PretrainingJob, arrays
from tests.support.task_data import single_rows, write_splits

FLAGS = {
    PretrainingJob: {"num_train_steps": 2},
    ClassifierJob: {"train_step": 2, "classifier_dropout": 0},
}


@pytest.mark.slow
@pytest.mark.parametrize("job_class", FLAGS)
def test_the_rate_of_the_flag(job_class, tmp_path):
    """The same weights as with the configuration's rate, which the folder keeps."""

    def trained(name, rates, **more):
        (tmp_path / name).mkdir()
        job = job_class(tmp_path / name, **rates)
        if job_class is ClassifierJob:
            write_splits(job.data, ("text", "label"), single_rows(16), train=(0, 16))
        assert job.run(**FLAGS[job_class], **more) == 0
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
