"""run_pretraining --token_dropping trains, resumes, leaves a plain model."""

import numpy as np
import pytest

from model_formats.encoders import ENCODERS
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import OBJECTIVES
from tests.support.programs import (
    DROPOUT,
    NO_DROPOUT,
    RECORDS_OF_EVERY_KIND,
    RUN,
    ElectraJob,
    PretrainingJob,
    arrays,
    assert_kills_change_nothing,
    results,
)
from tests.support.record_files import PACKED_DYNAMIC
from tests.support.tiny_models import SIZES, without_graphs

LAYERS = {**DROPOUT, "num_hidden_layers": 3}
DROPPING = {"token_dropping": 0.5}


@pytest.mark.usefixtures("eagerly")
def test_it_ends_as_a_plain_model(tmp_path, prints):
    job = PretrainingJob(tmp_path, **NO_DROPOUT, num_hidden_layers=4)
    export = tmp_path / "export"
    shown = prints(job.run, **DROPPING, num_train_steps=2, do_eval=True, export_dir=export)
    assert "layers 2 to 3 of 4 compute 8 of 16 tokens" in shown
    own = arrays(job.output, 2)
    assert len(np.unique(own["token_losses"])) > 10
    settings = ModelFolder(str(job.output)).stages[-1]["settings"]
    assert settings["token_dropping"] == 0.5

    # An evaluation drops nothing: the folder's results are those of a program without the flag.
    found = results(job.output)
    flags = {"do_train": False, "do_eval": True, "output_dir": tmp_path / "again"}
    assert job.run(**flags, init_checkpoint=export / "model.ckpt") == 0
    assert results(tmp_path / "again")["loss"] == pytest.approx(found["loss"], rel=1e-6)

    # The last updates without it.
    assert job.run(num_train_steps=3) == 0
    plain = arrays(job.output, 3)
    assert set(own) == {*plain, "token_losses"}
    assert set(arrays(export)) == {n for n in plain if "/adam_" not in n and "/" in n}


@pytest.mark.slow
@pytest.mark.usefixtures("optimized_graphs")
def test_a_killed_run_ends_as_one_that_was_not(tmp_path):
    """kill -9 at two steps; the table of losses goes on from what was saved."""
    job = PretrainingJob(tmp_path, **LAYERS)
    flags = {**RUN, **DROPPING, "gradient_accumulation_steps": 4}
    assert_kills_change_nothing(job, flags, (6, 13))


@pytest.mark.slow
@RECORDS_OF_EVERY_KIND
def test_records_of_every_kind(tmp_path, record_format, flags):
    job = PretrainingJob(tmp_path, record_format, **LAYERS)
    with without_graphs(record_format is PACKED_DYNAMIC):
        assert job.run(**flags, **DROPPING, do_eval=True, num_train_steps=3) == 0
    found = arrays(job.output, 3)
    assert np.isfinite(found["token_losses"]).all() and found["token_losses"].min() < 10
    assert np.isfinite(list(results(job.output).values())).all()


@pytest.mark.parametrize(
    "job_class, layers, share, words",
    (
        (PretrainingJob, 4, 1, "--token_dropping must be at least 0 and below 1"),
        (PretrainingJob, 1, 0.5, "needs a model of at least 2 layers. Received: 1"),
        (ElectraJob, 4, 0.5, "--token_dropping needs --objective=mlm. Received"),
    ),
)
def test_what_does_not_fit(tmp_path, fails, job_class, layers, share, words):
    fails(job_class(tmp_path, num_hidden_layers=layers).run, words, token_dropping=share)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_which_objectives_drop_tokens(name):
    """The record, which flags are checked by, says what the model's `Objective` can do."""
    objective = OBJECTIVES[name]
    kind = ENCODERS[(*objective.encoders, "bert")[0]]
    width = {"embedding_size": 16} if kind.name in ("albert", "electra") else {}
    model = objective.make_model(kind.make_model(kind.config(**SIZES, **width)))
    assert objective.drops_tokens == (model.objective.piece_losses is not None)
