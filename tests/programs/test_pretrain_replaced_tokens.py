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
    one_line,
    results,
)
from tests.support.record_files import FORMAT, PACKED, PACKED_DYNAMIC, describe, make_files
from tests.support.task_data import single_rows, write_splits
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


@pytest.mark.slow
def test_it_learns_which_pieces_were_replaced(tmp_path):
    """Rows of two pieces: another one was drawn by a generator that does not know them yet."""

    def two_pieces(number, row):
        ids = [7 + place % 2 for place in range(16)]
        positions = [1 + number % 5, 6 + number % 4, 10 + number % 6, 0]
        row["masked_lm_positions"] = positions
        row["masked_lm_ids"] = [ids[place] for place in positions]
        row["input_ids"] = [4 if place in positions[:3] else i for place, i in enumerate(ids)]

    job = ElectraJob(tmp_path)
    job.files = make_files(tmp_path, (20, 20), change=two_pieces)
    flags = {"train_batch_size": 16, "learning_rate": 0.003, "num_train_steps": 35}
    assert job.run(**flags, do_eval=True) == 0
    found = results(job.output)
    share = found["replaced_share"]
    assert 0.02 < share < 0.15 and found["masked_lm_accuracy"] > 0.9
    # Less than the entropy of the share, which is all that is known without looking.
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert found["discriminator_loss"] < 0.8 * entropy
    assert found["replacements_accuracy"] > 0.3 and found["originals_accuracy"] > 0.95


@pytest.mark.parametrize(
    "flags, words",
    (
        ({"config_file": "bert.json"}, ("--objective=rtd needs an ELECTRA's configuration",)),
        ({"generator_size": 0.01}, ("generator_size must be at most 1 and give a width",)),
    ),
)
def test_what_does_not_fit(job, capsys, monkeypatch, flags, words):
    monkeypatch.chdir(job.folder)
    assert job.run(**flags) == 1
    line = one_line(capsys)
    assert all(word in line for word in words), line


@pytest.mark.usefixtures("eagerly")
def test_another_objective_in_the_same_folder(trained, tmp_path, capsys):
    job, _ = trained
    assert job.run(objective="mlm", num_train_steps=7) == 1
    assert "--objective must be rtd, with which the training in" in one_line(capsys)
    evaluation = {"objective": "mlm", "do_train": False, "do_eval": True}
    assert job.run(**evaluation) == 1
    assert "--objective must be rtd, with which the training in" in one_line(capsys)
    flags = {"model_dir": job.output, "config_file": None, "output_dir": tmp_path / "measured"}
    assert job.run(**evaluation, **flags) == 1
    assert f"--objective must be rtd, as {job.output}/model.ckpt-2 was trained" in one_line(capsys)
    # A BERT has no such objective: what does not fit are the weights.
    flags = {"config_file": None, "bert_config_file": job.folder / "bert.json", "objective": "mlm"}
    assert job.run(**flags, init_checkpoint=job.output, output_dir=tmp_path / "bert") == 1
    assert "must fit the model. Received: none of the" in one_line(capsys)
    assert job.run(**flags) == 1
    assert f"{job.output}/electra_config.json, now for BERT" in one_line(capsys)
    # From its weights, into another folder, it is one: for masked words on the discriminator.
    flags = {"model_dir": job.output, "config_file": None, "output_dir": tmp_path / "words"}
    flags |= {"objective": "mlm", "num_train_steps": 1}
    flags["allow_missing"] = "cls/predictions/, cls/seq_relationship/"
    assert job.run(**flags) == 0


def test_another_generator_of_the_same_discriminator(trained, tmp_path, capsys):
    """Resumed, or from its weights: one line, not one for each of the generator's weights."""
    job, _ = trained
    words = f"--generator_size must be 0.25, with which {job.output}/model.ckpt-2 was trained. Rec"
    for flags in ({}, {"generator_size": 1.0}, {"init_checkpoint": job.output}):
        flags |= {"output_dir": tmp_path} if "init_checkpoint" in flags else {}
        assert job.run(**flags, num_train_steps=7) == 1
        assert words in one_line(capsys), flags


def export(folder, output, *flags):
    assert export_model.main(["x", f"--model_dir={folder}", f"--output_dir={output}", *flags]) == 0


@pytest.mark.usefixtures("eagerly")
def test_released_weights_are_read(trained, tmp_path, capsys):
    """A folder of transformers for each network, then Google's checkpoint of both."""
    job, _ = trained
    both, one, other = (tmp_path / name for name in ("both", "one", "other"))
    export(job.output, both, "--format=google")
    export(job.output, one, "--format=huggingface")
    export(job.output, other, "--format=huggingface", "--generator")
    measure = {"config_file": None, "do_train": False, "do_eval": True}
    for number, flags in enumerate(
        ({"model_dir": one, "generator_dir": other}, {"model_dir": both})
    ):
        output = tmp_path / f"on-{number}"
        assert job.run(**flags, **measure, output_dir=output) == 0
        assert "keep their initial values" not in capsys.readouterr().out
        found = results(output)
        expected = {**results(job.output), "global_step": 0}
        assert found == pytest.approx(expected, rel=1e-4)
    # The discriminator alone: a new generator, if that is asked for.
    flags = {"model_dir": one, **measure, "output_dir": tmp_path / "new"}
    new = {"allow_missing": "generator", "max_eval_steps": 1}
    assert job.run(**flags, **new) == 0
    # Of another size too: no weight of the trained generator is there.
    assert job.run(**{**flags, "output_dir": tmp_path / "wide"}, **new, generator_size=0.5) == 0
    capsys.readouterr()
    for more, words in (
        ({}, "generator/embeddings_project/kernel: missing"),
        ({"generator_dir": one}, "--generator_dir must hold an ELECTRA's generator"),
        ({"generator_dir": other, "generator_size": 0.5}, "--generator_size must be 0.25, the siz"),
        ({"generator_dir": REFERENCE_MODEL}, "of BERT"),
        ({"generator_dir": other, "export_dir": other}, "--export_dir must be another folder than"),
    ):
        assert job.run(**{**flags, "output_dir": tmp_path / "no", **more}) == 1
        assert words in one_line(capsys)
    assert job.run(generator_dir=other, output_dir=tmp_path / "no") == 1
    assert "--generator_dir needs the discriminator's weights" in one_line(capsys)


def test_the_discriminator_is_fine_tuned(trained, tmp_path):
    """Its encoder; the generator and both heads of the pre-training are left out."""
    job, _ = trained
    tuned = ClassifierJob(tmp_path)
    write_splits(tuned.data, ["text", "label"], single_rows(80), train=(0, 64), dev=(64, 80))
    flags = {"bert_config_file": None, "model_dir": job.output, "train_step": 60}
    assert tuned.run(**flags, do_eval=True) == 0
    assert results(tuned.output)["eval_accuracy"] > 0.9
    names = set(arrays(tuned.output, 60))
    assert "electra/embeddings_project/kernel" in names and "output_weights" in names
    assert not any(name.startswith(("generator", "discriminator", "bert/")) for name in names)
    text = next(text for text, label in single_rows(80) if label == "good")
    assert load_model(tuned.output).predict(text).label == "good"
