"""run_pretraining --objective=rtd: trains, evaluates, resumes, and says what does not fit."""

import contextlib
import io

import numpy as np
import pytest

from korean_bert import load_model
from model_formats.model_folder import REFERENCE_MODEL, ModelFolder
from run_scripts.conversion import export_model
from tests.support.programs import (
    DROPOUT,
    RECORDS_OF_EVERY_KIND,
    RUN,
    ClassifierJob,
    ElectraJob,
    arrays,
    assert_kills_change_nothing,
    curves,
    results,
)
from tests.support.record_files import FORMAT, PACKED, PACKED_DYNAMIC, describe
from tests.support.task_data import single_rows
from tests.support.tiny_models import without_graphs

RESULTS = {
    "discriminator_accuracy", "discriminator_loss", "examples", "global_step", "loss",
    "masked_lm_accuracy", "masked_lm_loss", "originals_accuracy", "replaced_share",
    "replacements_accuracy",
}  # fmt: skip


@pytest.fixture
def job(tmp_path):
    return ElectraJob(tmp_path, **DROPOUT)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A job after two steps on records of sentence pairs and an evaluation; what it printed."""
    job = ElectraJob(tmp_path_factory.mktemp("trained"), **DROPOUT)
    for path in job.files:
        describe(path, FORMAT, "nsp")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        flags = {"num_train_steps": 2, "save_summary_steps": 1}
        assert job.run(**flags, do_eval=True, generator_size=0.25) == 0
    return job, out.getvalue()


def test_trains_and_evaluates(trained):
    job, out = trained
    assert "generator_size 0.25" in out and "calling every token an original: accuracy 0." in out
    line = "note: --objective=rtd leaves the labels of sentence pairs out"
    assert out.count(line) == 1
    found = results(job.output)
    assert set(found) == RESULTS and found["examples"] == 40
    assert found["loss"] == pytest.approx(
        found["masked_lm_loss"] + 50 * found["discriminator_loss"], rel=1e-6
    )
    originals, share = found["originals_accuracy"], found["replaced_share"]
    whole = originals * (1 - share) + found["replacements_accuracy"] * share
    assert found["discriminator_accuracy"] == pytest.approx(whole)
    drawn = {"loss/discriminator", "accuracy/discriminator", "loss/masked_lm", "accuracy/masked_lm",
             "accuracy/originals", "accuracy/replacements", "data/replaced_share"}  # fmt: skip
    for folder in (job.output, job.output / "eval"):
        assert drawn <= set(curves(folder))
    names = set(arrays(job.output, 2))
    assert {"generator/encoder/layer_0/output/dense/kernel/adam_m", "generator_predictions/"
            "output_bias", "discriminator_predictions/dense_1/kernel"} <= names  # fmt: skip
    folder = ModelFolder(str(job.output))
    assert folder.model_type == "electra" and folder.config.generator_size == 0.25
    assert folder.stages[-1]["objective"] == "rtd"

    again = {"do_eval": True, "do_train": False, "model_dir": job.output, "config_file": None}
    assert job.run(**again, eval_batch_size=7) == 0
    assert results(job.output) == pytest.approx(found, rel=1e-4)


@pytest.mark.slow
@pytest.mark.usefixtures("optimized_graphs")
@pytest.mark.parametrize(
    "record_format, flags, steps",
    (
        (PACKED, {"precision": "bfloat16", "distribution_strategy": "mirrored"}, (3, 7, 12)),
        # A curve has a point there anyway: a run saves before its first evaluation, which adds one.
        (FORMAT, {"precision": "float16", "eval_every_steps": 6}, (4, 9, 13)),
    ),
    ids=("packed", "float16"),
)
def test_killed_runs_end_as_one_that_was_not(tmp_path, record_format, flags, steps):
    """kill -9 at three steps, then SIGTERM: the generator's draws are the same."""
    job = ElectraJob(tmp_path, record_format, **DROPOUT)
    if "eval_every_steps" in flags:
        flags = {**flags, "eval_input_file": job.files[0]}
    assert_kills_change_nothing(job, {**RUN, **flags}, steps)


@pytest.mark.slow
@RECORDS_OF_EVERY_KIND
def test_records_of_every_kind(tmp_path, record_format, flags):
    """The best checkpoint is kept."""
    job = ElectraJob(tmp_path, record_format, **DROPOUT)
    flags = {**flags, "eval_input_file": job.files[0], "eval_every_steps": 3}
    with without_graphs(record_format is PACKED_DYNAMIC):
        assert job.run(**flags, num_train_steps=3) == 0
    found = results(job.output / "best")
    assert set(found) == RESULTS and np.isfinite(list(found.values())).all()
    assert 0 < found["replaced_share"] < 0.4
    lowest = min(value for _, value in curves(job.output / "eval")["loss/discriminator"])
    assert found["discriminator_loss"] == pytest.approx(lowest)


@pytest.mark.parametrize(
    "flags, message",
    (
        ({"config_file": "bert.json"}, "--objective=rtd needs an ELECTRA's configuration"),
        ({"generator_size": 0.01}, "generator_size must be at most 1 and give a width"),
    ),
)
def test_what_does_not_fit(job, fails, monkeypatch, flags, message):
    monkeypatch.chdir(job.folder)
    fails(job.run, message, **flags)


@pytest.mark.usefixtures("eagerly")
def test_another_objective_in_the_same_folder(trained, tmp_path, fails):
    job, _ = trained
    said = "--objective must be rtd, with which the training in"
    fails(job.run, said, objective="mlm", num_train_steps=7)
    evaluation = {"objective": "mlm", "do_train": False, "do_eval": True}
    fails(job.run, said, **evaluation)
    flags = {"model_dir": job.output, "config_file": None, "output_dir": tmp_path / "measured"}
    said = f"--objective must be rtd, as {job.output}/model.ckpt-2 was trained"
    fails(job.run, said, **evaluation, **flags)
    # A BERT has no such objective: what does not fit are the weights.
    bert = {"config_file": None, "bert_config_file": job.folder / "bert.json", "objective": "mlm"}
    start = {"init_checkpoint": job.output, "output_dir": tmp_path / "bert"}
    fails(job.run, "must fit the model. Received: none of the", **bert, **start)
    fails(job.run, f"{job.output}/electra_config.json, now for BERT", **bert)
    # From its weights, into another folder, it is one: for masked words on the discriminator.
    flags |= {"output_dir": tmp_path / "words", "objective": "mlm", "num_train_steps": 1}
    flags["allow_missing"] = "cls/predictions/, cls/seq_relationship/"
    assert job.run(**flags) == 0


def test_another_generator_of_the_same_discriminator(trained, tmp_path, fails):
    """Resumed, or from its weights: one line, not one for each of the generator's weights."""
    job, _ = trained
    words = f"--generator_size must be 0.25, with which {job.output}/model.ckpt-2 was trained. Rec"
    start = {"init_checkpoint": job.output, "output_dir": tmp_path}
    for flags in ({}, {"generator_size": 1.0}, start):
        fails(job.run, words, **flags, num_train_steps=7)


def export(folder, output, *flags):
    assert export_model.main(["x", f"--model_dir={folder}", f"--output_dir={output}", *flags]) == 0


@pytest.mark.usefixtures("eagerly")
def test_released_weights_are_read(trained, tmp_path, prints, fails):
    """A folder of transformers for each network, then Google's checkpoint of both."""
    job, _ = trained
    both, one, other = (tmp_path / name for name in ("both", "one", "other"))
    export(job.output, both, "--format=google")
    export(job.output, one, "--format=huggingface")
    export(job.output, other, "--format=huggingface", "--generator")
    measure = {"config_file": None, "do_train": False, "do_eval": True}
    expected = {**results(job.output), "global_step": 0}
    for flags in ({"model_dir": one, "generator_dir": other}, {"model_dir": both}):
        output = tmp_path / f"on-{len(flags)}"
        shown = prints(job.run, **flags, **measure, output_dir=output)
        assert "keep their initial values" not in shown
        assert results(output) == pytest.approx(expected, rel=1e-4)
    # The discriminator alone: a new generator, if that is asked for.
    flags = {"model_dir": one, **measure, "output_dir": tmp_path / "new"}
    new = {"allow_missing": "generator", "max_eval_steps": 1}
    assert job.run(**flags, **new) == 0
    # Of another size too: no weight of the trained generator is there.
    assert job.run(**{**flags, "output_dir": tmp_path / "wide"}, **new, generator_size=0.5) == 0
    for more, words in (
        ({}, "generator/embeddings_project/kernel: missing"),
        ({"generator_dir": one}, "--generator_dir must hold an ELECTRA's generator"),
        ({"generator_dir": other, "generator_size": 0.5}, "--generator_size must be 0.25, the siz"),
        ({"generator_dir": REFERENCE_MODEL}, "of BERT"),
        ({"generator_dir": other, "export_dir": other}, "--export_dir must be another folder than"),
    ):
        fails(job.run, words, **{**flags, "output_dir": tmp_path / "no", **more})
    flags = {"generator_dir": other, "output_dir": tmp_path / "no"}
    fails(job.run, "--generator_dir needs the discriminator's weights", **flags)


def test_the_discriminator_is_fine_tuned(trained, tmp_path):
    """Its encoder; the generator and both heads of the pre-training are left out."""
    job, _ = trained
    tuned = ClassifierJob(tmp_path).with_sentences(64, 16)
    flags = {"bert_config_file": None, "model_dir": job.output, "train_step": 60}
    assert tuned.run(**flags, do_eval=True) == 0
    assert results(tuned.output)["eval_accuracy"] > 0.9
    names = set(arrays(tuned.output, 60))
    assert "electra/embeddings_project/kernel" in names and "output_weights" in names
    assert not any(name.startswith(("generator", "discriminator", "bert/")) for name in names)
    text = next(text for text, label in single_rows(80) if label == "good")
    assert load_model(tuned.output).predict(text).label == "good"
