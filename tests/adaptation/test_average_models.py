"""The program average_models: the mean of weights, what is left out, models that do not fit."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_tf.checkpoint import write_arrays
from model_formats.model_folder import ModelFolder, write_trained_positions
from model_formats.weights import open_weights
from run_scripts.conversion import export_model
from run_scripts.tools.average_models import main
from tests.support.models.adapted_models import read, write_model
from tests.support.models.model_folders import change_json, drop_weights, write_folder
from tests.support.programs import one_line


@pytest.fixture
def models(tmp_path):
    """Three models of a task; the weights of the second and third were moved."""
    first = write_model(tmp_path / "model1")
    arrays = read(first)
    for number in (2, 3):
        folder = tmp_path / f"model{number}"
        shutil.copytree(first, folder)
        rng = np.random.default_rng(number)
        moved = {
            name: (array + rng.normal(size=array.shape)).astype(array.dtype)
            for name, array in arrays.items()
        }
        write_arrays(str(folder / "model.ckpt-3"), moved)
    return [str(tmp_path / f"model{number}") for number in (1, 2, 3)]


def average(models, output):
    return main(["average_models", f"--models={','.join(models)}", f"--output_dir={output}"])


def test_the_mean(models, tmp_path):
    """Without moments and counters, with what describes the first model."""
    assert average(models, tmp_path / "mean") == 0
    before, after = [read(folder) for folder in models], read(tmp_path / "mean")
    assert set(before[0]) - set(after) == {name for name in before[0] if "adam_m" in name} | {
        "global_step"
    }
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
def test_positions_count_that_all_models_have_trained(models, tmp_path, trained, least):
    """A model without the record is a released one, which trained them all."""
    for folder, number in zip(models, trained, strict=True):
        write_trained_positions(folder, number)
    assert average(models, tmp_path / "mean") == 0
    assert ModelFolder.open(str(tmp_path / "mean")).trained_positions == least


def test_the_least_length_counts(models, tmp_path):
    """Models that learned the same task of longer and shorter texts."""
    for folder, length in zip(models, (16, 12, 14), strict=True):
        change_json(Path(folder, "finetuning.json"), max_seq_length=length)
    assert average(models, tmp_path / "mean") == 0
    one, mean = (ModelFolder.open(str(folder)) for folder in (models[0], tmp_path / "mean"))
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
    given = [f"{folder}/{named}" for folder in models[:2]]
    for folder, path in zip(models, given, strict=False):
        if named == "best":
            weights = shutil.ignore_patterns("*.txt", "*.json")
            shutil.copytree(folder, path, ignore=weights)
            write_arrays(f"{folder}/model.ckpt-4", {"newer": np.zeros(1)})
        else:
            os.remove(f"{folder}/finetuning.json")
            argv = [f"--model_dir={folder}", f"--output_dir={folder}-apart", "--format=huggingface"]
            assert export_model.main(["export_model", *argv]) == 0
            shutil.rmtree(folder)
            os.rename(f"{folder}-apart", folder)
    assert average(given, tmp_path / "mean") == 0
    name = "bert/pooler/dense/kernel"
    expected = np.mean([open_weights(path).read(name) for path in given], axis=0)
    np.testing.assert_allclose(read(tmp_path / "mean")[name], expected, rtol=1e-6, atol=1e-7)
    assert ModelFolder.open(str(tmp_path / "mean")).tokenizer is not None


POOLER = "bert/pooler/dense/bias"


@pytest.mark.parametrize(
    "change, message",
    (
        (lambda m: change_json(m / "finetuning.json", task="ner"), "the same task"),
        (lambda m: change_json(m / "finetuning.json", task_name="csv"), "same settings"),
        (lambda m: change_json(m / "bert_config.json", hidden_act="relu"), "the same config"),
        (
            lambda m: change_json(m / "tokenizer_config.json", do_lower_case=True),
            "the same tokenizer",
        ),
        (lambda m: drop_weights(m / "model.ckpt-3", POOLER), f"which differ in {POOLER}"),
        (lambda m: drop_weights(m / "model.ckpt-3", "output_weights"), "output_weights"),
    ),
    ids=("task", "settings", "config", "tokenizer", "weights", "head"),
)
def test_models_that_differ(change, message, models, tmp_path, capsys):
    change(Path(models[1]))
    assert average(models, tmp_path / "mean") == 1
    line = one_line(capsys)
    assert message in line and "max_seq_length" not in line  # which may differ
    assert not (tmp_path / "mean").exists() or not list((tmp_path / "mean").iterdir())


def test_weights_that_nothing_here_loads(tmp_path, capsys):
    """The head that transformers gives an ELECTRA for classes has a layer more than ours."""
    write_folder(tmp_path / "ours", "electra", "classification")
    argv = [f"--model_dir={tmp_path}/ours", f"--output_dir={tmp_path}/one", "--format=huggingface"]
    assert export_model.main(["export_model", *argv]) == 0
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
