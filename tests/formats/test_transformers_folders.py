"""What transformers computed with a folder is what this project computes with it."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from transformers_models import FOLDERS, compare, load_model, new_encoder

from bert_common.errors import InputError
from bert_tf.checkpoint import load_arrays
from model_formats.config_file import ConfigFile
from model_formats.transformers_files.weights import open_huggingface
from model_formats.weights import open_weights
from tests.support.libraries import needs_torch
from tests.support.models.model_folders import change_json
from tests.support.paths import PYTHONPATH, run_python
from tests.support.refusals import refused

# Folder -> the variables that keep new weights, by what their names begin with.
KEPT = {
    "bert_erf": (),
    "bert_tanh": (),
    "albert": (),
    "electra_base": ("generator",),
    "electra_small": ("generator",),
    "roberta": ("bert/pooler/", "cls/seq_relationship/"),
    "bert_classifier": (),
    "roberta_classifier": (),
}

MORE = (
    "bert_encoder", "bert_masked_lm", "bert_tokens", "bert_questions", "bert_choices",
    "albert_groups", "albert_classifier", "electra_generator", "electra_tokens",
    "roberta_encoder",
)  # fmt: skip

PUBLISHED = (
    "klue/bert-base", "beomi/kcbert-base", "monologg/koelectra-base-v3-discriminator",
    "monologg/koelectra-small-v3-discriminator", "klue/roberta-base", "kykim/albert-kor-base",
)  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_outputs_and_losses(name):
    report = compare(FOLDERS / name)
    assert all(n.startswith(KEPT[name]) for n in report.missing)
    assert bool(report.missing) == bool(KEPT[name])


def write_fresh(folder, *names):
    """Lets transformers write models into a folder."""
    environment = {"PYTHONPATH": PYTHONPATH, "PATH": "/usr/bin:/bin"}
    run = run_python(FOLDERS / "write_folders.py", folder, *names, env=environment)
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@needs_torch
def test_fresh_folders(tmp_path):
    names = (*KEPT, *MORE)
    write_fresh(tmp_path, *names)
    for name in names:
        compare(tmp_path / name)


@pytest.mark.slow
@needs_torch
@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_of_published_models(name, tmp_path):
    write_fresh(tmp_path, name)
    # Twelve layers add up in float32: of outputs of about 3.
    report = compare(tmp_path / name, tolerance=3e-5)
    assert len(report.loaded) > 20
    if "electra" in name:
        assert any(n.startswith("discriminator_predictions") for n in report.loaded)


def changed(tmp_path, name, change=lambda arrays: None, **config):
    """A copy of a kept folder whose dict of arrays was changed in place, and config.json."""
    folder = tmp_path / "changed"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(FOLDERS / name, folder)
    arrays = load_file(folder / "model.safetensors")
    change(arrays)
    save_file(arrays, folder / "model.safetensors", {"format": "pt"})
    change_json(folder / "config.json", **config)
    return folder


TABLE, DECODER = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"


def test_tied_weights_are_ignored_if_equal_and_refused_if_not(tmp_path):
    def tie(arrays):
        arrays[DECODER] = arrays[TABLE].copy()
        arrays["cls.predictions.decoder.bias"] = arrays["cls.predictions.bias"].copy()
        arrays["bert.embeddings.position_ids"] = np.arange(24)[None]

    tied = {DECODER, "cls.predictions.decoder.bias", "bert.embeddings.position_ids"}
    assert set(compare(changed(tmp_path, "bert_erf", tie)).ignored) == tied

    def untie(arrays):
        arrays[DECODER] = arrays[TABLE] + 1

    with pytest.raises(InputError, match=f"{DECODER} must equal {TABLE}"):
        load_model(changed(tmp_path, "bert_erf", untie))

    def move(arrays):  # only the copy was stored
        arrays["cls.predictions.decoder.bias"] = arrays.pop("cls.predictions.bias")

    assert compare(changed(tmp_path, "bert_erf", move)).missing == ()


def test_names_of_old_files(tmp_path):
    def rename(arrays):
        for name in [n for n in arrays if "LayerNorm" in n]:
            old = name.replace("weight", "gamma").replace("bias", "beta")
            arrays[old] = arrays.pop(name)

    assert compare(changed(tmp_path, "bert_erf", rename)).missing == ()

    def both(arrays):
        arrays["bert.embeddings.LayerNorm.gamma"] = arrays["bert.embeddings.LayerNorm.weight"]

    with pytest.raises(InputError, match="must hold bert/embeddings/LayerNorm/gamma once"):
        load_model(changed(tmp_path, "bert_erf", both))


@pytest.mark.parametrize("name", ("bert_erf", "albert", "electra_small", "roberta"))
def test_an_encoder_alone(name, tmp_path):
    """What transformers saves of a model without heads has no prefix."""
    prefix = {"bert_erf": "bert"}.get(name, name.removesuffix("_small")) + "."

    def strip(arrays):
        for key in list(arrays):
            value = arrays.pop(key)
            if key.startswith(prefix):
                arrays[key.removeprefix(prefix)] = value

    folder = changed(tmp_path, name, strip)
    encoder = new_encoder(folder)
    report = load_arrays(encoder, open_weights(str(folder)))
    expected, _ = load_model(FOLDERS / name)
    for mine, theirs in zip(encoder.weights, expected.encoder.weights, strict=True):
        if "pooler" not in mine.path or not report.missing:
            np.testing.assert_array_equal(mine, theirs, err_msg=mine.path)
    head = "discriminator_predictions/dense" if prefix == "electra." else "cls/predictions/output"
    with pytest.raises(InputError, match=f"- {head}.*: missing"):
        load_model(folder, allow_missing=())


def test_unknown_and_missing_names_are_listed(tmp_path):
    def change(arrays):
        layer = "bert.encoder.layer.0"
        arrays[f"{layer}.adapter.weight"] = arrays.pop(f"{layer}.output.dense.weight")

    unknown = "+ bert.encoder.layer.0.adapter.weight [32, 37]: not part of the model"
    with refused("- bert/encoder/layer_0/output/dense/kernel: missing", unknown):
        load_model(changed(tmp_path, "bert_erf", change))


def test_a_configuration_that_does_not_fit(tmp_path):
    for name, values, message in (
        ("bert_erf", {"hidden_size": 64}, r"word_embeddings: the model has \[61, 64\], the file"),
        ("bert_erf", {"num_hidden_layers": 3}, "layer_2/attention/self/query/kernel: missing"),
        ("bert_erf", {"model_type": "gpt2"}, "model_type must be one of .* Received: 'gpt2'"),
        ("albert", {"num_hidden_groups": 2}, "group_1/inner_group_0/.*: missing"),
        ("roberta", {"pad_token_id": 25}, "pad_token_id must be an integer from 0, below"),
        ("roberta", {"hidden_act": "gelu_new"}, "hidden_act .* must be gelu, .*: gelu_new$"),
    ):
        with pytest.raises(InputError, match=message):
            load_model(changed(tmp_path, name, **values))


def test_projection_of_equally_wide_embeddings(tmp_path):
    """transformers' ALBERT always has the layer, Google's only where it is needed."""
    folder = changed(tmp_path, "albert", embedding_size=32)
    arrays = load_file(folder / "model.safetensors")
    for name, array in arrays.items():
        wide = {"embeddings.": -1, "predictions.LayerNorm": 0, "predictions.dense.bias": 0}
        axis = next((a for part, a in wide.items() if part in name), None)
        if name == "predictions.dense.weight":
            axis = 0
        if axis is not None:
            arrays[name] = np.concatenate([array, array], axis=axis)
    kernel, bias = (f"albert.encoder.embedding_hidden_mapping_in.{w}" for w in ("weight", "bias"))
    arrays |= {kernel: np.eye(32, dtype=np.float32), bias: np.zeros(32, np.float32)}
    save_file(arrays, folder / "model.safetensors")
    _, report = load_model(folder)
    assert set(report.ignored) == {kernel, bias}
    arrays[bias] = arrays[bias] + 1
    save_file(arrays, folder / "model.safetensors")
    with pytest.raises(InputError, match="embedding_hidden_mapping_in/kernel .*not part of"):
        load_model(folder)


def test_a_configuration_that_does_not_name_its_kind(tmp_path):
    """Of 2019; --bert_config_file reads it, so the weights beside it must be readable too."""
    folder = changed(tmp_path, "bert_erf", output_attentions=False)
    values = json.loads((folder / "config.json").read_text())
    del values["model_type"], values["architectures"]
    (folder / "config.json").write_text(json.dumps(values))
    assert ConfigFile(str(folder / "config.json"), "bert").config.hidden_act == "gelu_erf"
    found = open_huggingface(str(folder / "model.safetensors")).shapes
    assert found == open_huggingface(str(FOLDERS / "bert_erf" / "model.safetensors")).shapes


def test_a_file_without_its_configuration(tmp_path):
    shutil.copy(FOLDERS / "bert_erf" / "model.safetensors", tmp_path)
    with pytest.raises(InputError, match="must have its config.json beside it"):
        open_huggingface(str(tmp_path / "model.safetensors"))


@pytest.mark.slow
@needs_torch
def test_the_command_that_converts_a_pickle(tmp_path):
    """It is run as the message has it, then the folder loads."""
    folder = tmp_path / "it's an old [model]"
    shutil.copytree(FOLDERS / "bert_erf", folder)
    code = (
        "import sys, torch; from safetensors.torch import load_file; f = sys.argv[1]; "
        "torch.save(load_file(f + '/model.safetensors'), f + '/pytorch_model.bin')"
    )
    run_python("-c", code, folder, check=True)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError) as caught:
        load_model(folder)
    command = str(caught.value).split("are installed: ")[1]
    assert command.startswith("python -c ")
    subprocess.run(command.replace("python", sys.executable, 1), shell=True, check=True)
    assert compare(folder).missing == ()
