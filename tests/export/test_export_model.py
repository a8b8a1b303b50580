"""The program export_model writes every format, or says in one line why not."""

import ast
import importlib.util
import json
import os
import re
import shlex

import pytest

from bert_common.errors import InputError
from bert_tf.checkpoint import save_google_checkpoint
from model_formats.export_folder import RECORD_FILE
from model_formats.load_folder import load_folder
from run_scripts.conversion import export_model
from run_scripts.conversion.export_model import FORMATS, parse_size
from tests.support.crosses import but_slow
from tests.support.models.model_folders import write_folder, write_model
from tests.support.programs import one_line
from tests.support.tiny_models import weights_of
from tests.support.vocabularies import write_lines


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A fine-tuned model, and in its folder checkpoints of two steps."""
    folder = tmp_path_factory.mktemp("model")
    write_folder(folder, task="ner")
    return folder


def run(folder, output, form, *flags):
    flags = [f"--model_dir={folder}", f"--output_dir={output}", f"--format={form}", *flags]
    return export_model.main(["export_model", *flags])


def files(folder):
    paths = folder.rglob("*")
    return sorted(str(path.relative_to(folder)) for path in paths if not path.is_dir())


# A part of what is printed.
LOADED = {
    "google": "--vocab_file={}/vocab.txt --do_lower_case=False",
    "huggingface": "transformers.BertForTokenClassification.from_pretrained('{}')",
    "saved_model": "tf.saved_model.load('{}')",
    "keras": "keras.saving.load_model('{}/model.keras')",
}


@pytest.mark.parametrize("form", but_slow(FORMATS, FORMATS.keys() - {"saved_model"}))
def test_one_line_says_what_was_written(form, model, tmp_path, capsys):
    absent = [name for name in FORMATS[form].libraries if not importlib.util.find_spec(name)]
    if absent:
        pytest.skip(f"needs {', '.join(absent)}")
    output = tmp_path / "out"
    flags = [f"--base_dir={model}"] if form == "difference" else []
    assert run(model, output, form, *flags) == 0
    *others, printed = capsys.readouterr().out.splitlines()
    assert len(others) == (form == "difference")  # what the approximation loses
    assert printed.startswith(f"{model}/model.ckpt-3: exported to {output}; to load it: ")
    assert "{" not in printed
    record = json.loads((output / RECORD_FILE).read_text())
    assert record["format"] == form
    assert sorted([*record["files"], RECORD_FILE]) == files(output)
    # Who may read one file may read all.
    assert len({(output / name).stat().st_mode for name in files(output)}) == 1
    # Nothing is left beside it.
    assert os.listdir(tmp_path) == ["out"]
    assert LOADED.get(form, "").format(output) in printed


@pytest.mark.parametrize("name", ("내 모델", "it's"))
def test_a_folder_is_one_word_of_a_command(model, tmp_path, capsys, name):
    output = tmp_path / name
    assert run(model, output, "google") == 0
    command = capsys.readouterr().out.split("google-research/bert with ")[1]
    assert f"--init_checkpoint={output}/bert_model.ckpt" in shlex.split(command)
    assert run(model, tmp_path / f"{name} keras", "keras") == 0
    code = capsys.readouterr().out.split("to load it: ")[1]
    assert ast.literal_eval(re.search(r"load_model\((.*)\)", code)[1]) == (
        f"{output} keras/model.keras"
    )


def test_a_checkpoint_of_the_folder(tmp_path):
    """An earlier one, by its name."""
    other = write_model(tmp_path / "in", task="ner")
    other.head.output_bias.assign([7.0, 8.0, 9.0])
    save_google_checkpoint(other, str(tmp_path / "in" / "model.ckpt-2"))
    chosen = f"--init_checkpoint={tmp_path}/in/model.ckpt-2"
    for flags in ([chosen], []):
        assert run(tmp_path / "in", tmp_path / "out", "google", *flags) == 0
        found = weights_of(load_folder(str(tmp_path / "out")).model)["output_bias"]
        assert (found.tolist() == [7.0, 8.0, 9.0]) == (flags == [chosen])


def test_an_earlier_export_is_replaced(model, tmp_path):
    """Files of the other format are gone."""
    output = tmp_path / "out"
    output.mkdir()  # an empty one is no hindrance
    assert run(model, output, "google") == 0
    assert run(model, output, "keras") == 0
    assert "model.keras" in files(output) and "bert_model.ckpt.index" not in files(output)


@pytest.mark.parametrize("what", ["the working folder", "a mount"])
def test_a_folder_that_cannot_be_replaced(what, model, tmp_path, monkeypatch, capsys):
    if what == "a mount":
        monkeypatch.setattr(os.path, "ismount", lambda path: path == str(tmp_path))
    else:
        monkeypatch.chdir(tmp_path)
    assert run(model, tmp_path, "google") == 1
    assert f"Received: {tmp_path}, {what}" in one_line(capsys)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("change, reason", [
    (lambda folder: (folder / "notes.txt").write_text("mine"), "notes.txt, which no export wrote"),
    (lambda folder: (folder / "data").symlink_to(folder.parent), "data, which no export wrote"),
    (lambda folder: (folder / "bert_config.json").write_text("{}"),
     "bert_config.json, which was changed after the export"),
    (lambda folder: (folder / RECORD_FILE).write_text("{}"), ", which no export wrote"),
    (lambda folder: (folder / RECORD_FILE).unlink(), ", which no export wrote"),
])  # fmt: skip
def test_files_of_the_user_s_are_kept(change, reason, model, tmp_path, capsys):
    output = tmp_path / "out"
    assert run(model, output, "google") == 0
    change(output)
    before = {name: (output / name).read_bytes() for name in files(output)}
    capsys.readouterr()
    assert run(model, output, "keras") == 1
    assert reason in one_line(capsys)
    assert {name: (output / name).read_bytes() for name in files(output)} == before


def test_a_model_s_own_folder_is_kept(model, capsys):
    before = files(model)
    assert run(model, model, "google") == 1
    assert "--output_dir must be new, empty, or an earlier export" in one_line(capsys)
    assert files(model) == before


@pytest.mark.parametrize("where", ("in the export", "at the rename"))
def test_a_failure_leaves_the_earlier_export(where, model, tmp_path, monkeypatch, capsys):
    output, rename, failed = tmp_path / "out", os.rename, []
    assert run(model, output, "google") == 0
    before = files(output)

    def fail(source, target):
        if where == "at the rename" and not source.endswith(".partial"):
            return rename(source, target)  # of the earlier one, and back
        failed.append(target)
        raise OSError(28, "No space left on device", target)

    place = "model_formats.keras_file.export" if where == "in the export" else "os.rename"
    monkeypatch.setattr(place, fail)
    capsys.readouterr()
    assert run(model, output, "keras") == 1
    assert "No space left on device" in one_line(capsys) and len(failed) == 1
    assert files(output) == before and os.listdir(tmp_path) == ["out"]


@pytest.mark.parametrize("form, flags, message", [
    ("google", ["--max_shard_size=1GB"], "--max_shard_size must be given with --format=huggingf"),
    ("huggingface", ["--max_shard_size=x"], "--max_shard_size must be a number with KB"),
    ("pickle", [], "--format=pickle: value should be one of <google|"),
    ("google", ["--init_checkpoint=/none"], "--init_checkpoint: "),
    ("keras", ["--precision=int8"], "--precision=int8 must be given with --format=onnx or litert"),
    ("huggingface", ["--precision=int8"], "--precision=int8 must be given with --format=onnx or"),
    ("google", ["--precision=float16"], "given with --format=huggingface or difference or"),
    ("keras", [f"--card_file={__file__}"], "--card_file must be given with --format=huggingface"),
    ("huggingface", ["--card_file=/none"], "--card_file must be a file. Received: /none, noth"),
    ("huggingface", ["--max_size=x"], "--max_size must be a number with KB, MB or GB"),
    ("google", ["--max_size=1KB"], "--max_size must be at least the size of the export. Receiv"),
    ("google", ["--vocab_file=/none"], "/none, nothing there"),
])  # fmt: skip
def test_bad_flags(form, flags, message, model, tmp_path, capsys):
    assert run(model, tmp_path / "out", form, *flags) == 1
    assert message in one_line(capsys)
    assert not (tmp_path / "out").exists() and not os.listdir(tmp_path)


def test_a_vocabulary_larger_than_the_model(model, tmp_path, capsys):
    pieces = [*(model / "vocab.txt").read_text("utf-8").splitlines(), *map(str, range(100, 400))]
    path = write_lines(tmp_path / "large.txt", pieces)
    flags = f"--vocab_file={path}", "--nodo_lower_case"
    assert run(model, tmp_path / "out", "huggingface", *flags) == 1
    assert f"{path} has {len(pieces)} entries" in one_line(capsys)


def test_sizes():
    sizes = {"500MB": 500_000_000, "1.5 GB": 1_500_000_000, "2KiB": 2048, "7": 7}
    assert {text: parse_size("max_size", text) for text in sizes} == sizes
    for text in ("", "x", "5XB", "-1MB", "0MB", "1e3", "0.0001KB", "9" * 99 + "GB"):
        with pytest.raises(InputError, match="--max_shard_size must be a number with KB"):
            parse_size("max_shard_size", text)


def test_bad_folders(model, tmp_path, capsys):
    (tmp_path / "file").write_text("x")
    for folder, output, message in (
        (tmp_path, tmp_path / "out", "--model_dir must hold bert_config.json or albert_config"),
        (model, tmp_path / "file", "--output_dir must be a folder"),
        (model, tmp_path / "file" / "out", "--output_dir must be in a folder that can be written"),
    ):
        assert run(folder, output, "google") == 1
        assert message in one_line(capsys)


def test_a_library_that_is_not_installed(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(export_model.importlib.util, "find_spec", lambda name: None)
    assert run(model, tmp_path / "out", "huggingface") == 1
    assert "this format needs safetensors (pip install" in one_line(capsys)
