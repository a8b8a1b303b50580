"""The program average_models: the mean of weights, what is left out, models that do not fit."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_tf.checkpoint import write_arrays
from model_formats.model_folder import ModelFolder, write_trained_positions
from model_formats.weights import open_weights
from run_scripts.tools.average_models import main
from tests.support.models.adapted_models import read, weights, write_model
from tests.support.models.model_folders import (
    change_json,
    drop_weights,
    export_folder,
    write_folder,
)
from tests.support.programs import one_line


@pytest.fixture
def models(tmp_path):
    """Three models of a task; the weights of the second and third were moved."""
    first = write_model(tmp_path / "model1")
    arrays = read(first)
    for number in (2, 3):
        folder = shutil.copytree(first, tmp_path / f"model{number}")
        rng = np.random.default_rng(number)
        moved = {n: (a + rng.normal(size=a.shape)).astype(a.dtype) for n, a in arrays.items()}
        write_arrays(str(folder / "model.ckpt-3"), moved)
    return [str(tmp_path / f"model{number}") for number in (1, 2, 3)]


def average(models, output):
    return main(["average_models", f"--models={','.join(models)}", f"--output_dir={output}"])


def test_the_mean(models, tmp_path):
    """Without moments and counters, with what describes the first model."""
    assert average(models, tmp_path / "mean") == 0
    before, after = [weights(folder) for folder in models], read(tmp_path / "mean")
    assert set(after) == set(before[0])
    for name, array in after.items():
        assert array.dtype == before[0][name].dtype
        expected = np.mean([arrays[name].astype(np.longdouble) for arrays in before], axis=0)
        np.testing.assert_allclose(array, expected, rtol=1e-6, atol=1e-7, err_msg=name)
    one, mean = (ModelFolder.open(str(folder)) for folder in (models[0], tmp_path / "mean"))
    for what in ("config", "task", "settings", "trained_positions"):
        assert getattr(mean, what) == getattr(one, what)
    # The model card says that these weights are no training's own.
    averaging = {"program": "averaging", "settings": {"models": 3}}
    assert mean.stages == [*one.stages, averaging]
    assert mean.tokenizer.fingerprint() == one.tokenizer.fingerprint()


@pytest.mark.parametrize("trained, least", (((24, 16, None), 16), ((None, 24, 24), 24)))
def test_the_least_counts(models, tmp_path, trained, least):
    """Without a record of positions a model is a released one, which trained them all."""
    for folder, positions, length in zip(models, trained, (16, 12, 14), strict=True):
        write_trained_positions(folder, positions)
        change_json(Path(folder, "finetuning.json"), max_seq_length=length)
    assert average(models, tmp_path / "mean") == 0
    one, mean = (ModelFolder.open(str(folder)) for folder in (models[0], tmp_path / "mean"))
    assert mean.trained_positions == least
    assert mean.settings == {**one.settings, "max_seq_length": 12}


def test_a_comma_in_a_name(models, tmp_path):
    shutil.move(models[1], tmp_path / "model,2")
    assert average([models[0], f" {tmp_path}/model\\,2", ""], tmp_path / "mean") == 0
    assert "output_bias" in read(tmp_path / "mean")


def test_checkpoints_of_one_training(models, tmp_path):
    """The newest is not taken for both; the result is a model."""
    older = read(models[1])
    write_arrays(f"{models[0]}/model.ckpt-2", older)
    both = [f"{models[0]}/model.ckpt-{step}" for step in (2, 3)]
    assert average(both, tmp_path / "mean") == 0
    name = "bert/pooler/dense/kernel"
    expected = (older[name] + read(models[0])[name]) / 2
    np.testing.assert_allclose(read(tmp_path / "mean")[name], expected, rtol=1e-6)


@pytest.mark.parametrize("named", ("best", "model.safetensors"))
def test_other_names_of_a_model(models, tmp_path, named):
    """The folder of a training's best checkpoint; the file of transformers' weights."""
    given = []
    for folder in map(Path, models[:2]):
        if named == "best":
            weights_alone = shutil.ignore_patterns("*.txt", "*.json")
            shutil.copytree(folder, folder / "best", ignore=weights_alone)
            write_arrays(f"{folder}/model.ckpt-4", {"newer": np.zeros(1)})
        else:
            (folder / "finetuning.json").unlink()
            folder = export_folder(folder, f"{folder}-apart")
        given.append(f"{folder}/{named}")
    assert average(given, tmp_path / "mean") == 0
    name = "bert/pooler/dense/kernel"
    expected = np.mean([open_weights(path).read(name) for path in given], axis=0)
    np.testing.assert_allclose(read(tmp_path / "mean")[name], expected, rtol=1e-6, atol=1e-7)
    assert ModelFolder.open(str(tmp_path / "mean")).tokenizer is not None


POOLER = "bert/pooler/dense/bias"


@pytest.mark.parametrize(
    "file, change, message",
    (
        ("finetuning.json", {"task": "ner"}, "the same task"),
        ("finetuning.json", {"task_name": "csv"}, "same settings"),
        ("bert_config.json", {"hidden_act": "relu"}, "the same config"),
        ("tokenizer_config.json", {"do_lower_case": True}, "the same tokenizer"),
        ("model.ckpt-3", POOLER, f"which differ in {POOLER}"),
        ("model.ckpt-3", "output_weights", "output_weights"),
    ),
)
def test_models_that_differ(file, change, message, models, tmp_path, capsys):
    path = Path(models[1], file)
    if path.suffix == ".json":
        change_json(path, **change)
    else:
        drop_weights(path, change)
    assert average(models, tmp_path / "mean") == 1
    line = one_line(capsys)
    assert message in line and "max_seq_length" not in line  # which may differ
    assert not (tmp_path / "mean").exists() or not list((tmp_path / "mean").iterdir())


def test_weights_that_nothing_here_loads(tmp_path, capsys):
    """The head that transformers gives an ELECTRA for classes has a layer more than ours."""
    write_folder(tmp_path / "ours", "electra", "classification")
    export_folder(tmp_path / "ours", tmp_path / "one")
    arrays = load_file(tmp_path / "one" / "model.safetensors")
    arrays["classifier.dense.weight"] += 1
    save_file(arrays, tmp_path / "one" / "model.safetensors", {"format": "pt"})
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    capsys.readouterr()
    assert average([f"{tmp_path}/one", f"{tmp_path}/two"], tmp_path / "mean") == 1
    assert "a model that this project has. Received: classifier.dense" in one_line(capsys)


def test_one_model_or_a_folder_with_one(models, tmp_path, capsys):
    assert average(models[:1], tmp_path / "mean") == 1
    assert "at least two models" in one_line(capsys)
    assert average([models[0], "nowhere"], tmp_path / "mean") == 1
    assert "nowhere" in one_line(capsys)
    before = read(models[2])
    assert average(models[:2], models[2]) == 1
    assert "a folder without a model" in one_line(capsys)
    np.testing.assert_equal(read(models[2]), before)


def test_a_vocabulary_larger_than_the_configuration_says(models, tmp_path, capsys):
    """In all models alike, so that nothing differs between them."""
    for folder in models:
        change_json(Path(folder, "bert_config.json"), vocab_size=7)
    assert average(models, tmp_path / "mean") == 1
    assert "vocab_size of the configuration must be at least" in one_line(capsys)
