"""The model that comes with the project is whole, small, described, found by programs."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from model_formats.export_folder import RECORD_FILE, check_output_dir
from model_formats.load_folder import load_folder
from model_formats.model_folder import REFERENCE_MODEL
from run_scripts import extract_features
from run_scripts.conversion.export_model import ExportFlags, parse_size
from run_scripts.flags.flag_files import find_input
from run_scripts.flags.parser import parse
from run_scripts.tools import fill_masks
from tests.support.libraries import needs_torch
from tests.support.paths import ROOT, run_python
from tests.support.programs import one_line

FOLDER = Path(REFERENCE_MODEL)
SECTIONS = {"Evaluation", "Training", "Corpus", "Licence", "With transformers"}
TEXT = "우리[MASK] 버스를 타고 집에 갔다[MASK]"


@pytest.fixture(scope="module")
def loaded():
    return load_folder(REFERENCE_MODEL)


def test_it_is_what_an_export_wrote():
    """By the digests that the export recorded; with the flags of its flag file."""
    assert FOLDER == ROOT / "reference_model"
    check_output_dir(REFERENCE_MODEL)
    assert json.loads((FOLDER / RECORD_FILE).read_text())["format"] == "huggingface"
    flags = parse(ExportFlags, ["x", "--flagfile=reference_model_export.flags", "--model_dir=m"])
    assert flags.precision == "float16" and flags.output_dir == "reference_model"
    assert parse_size("max_size", flags.max_size) == 20_000_000
    stored = load_file(FOLDER / "model.safetensors")
    assert {array.dtype for array in stored.values()} == {np.dtype(np.float16)}
    files = [path for path in FOLDER.iterdir() if path.name != "__pycache__"]
    assert sum(path.stat().st_size for path in files) <= 20_000_000


def test_it_loads_whole(loaded):
    assert loaded.task == "pretraining" and loaded.missing == ()
    assert loaded.tokenizer.kind == "korean"
    assert loaded.tokenizer.vocab_size <= loaded.config.vocab_size
    assert 1 <= loaded.trained_positions <= loaded.config.max_position_embeddings


def test_its_card():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    metadata = card.split("---")[1]
    assert re.search(r"^license: \S+$", metadata, re.MULTILINE) and "\nlanguage: ko\n" in metadata
    assert set(re.findall(r"^## (.+)$", card, re.MULTILINE)) >= SECTIONS
    source = (ROOT / "run_scripts/flagfiles/reference_model_card.md").read_text(encoding="utf-8")
    assert source.split("---", 2)[2].strip() in card  # changed there, then exported again


def test_fill_masks_uses_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    guesses = []
    for model in ([], [f"--model_dir={REFERENCE_MODEL}"], ["--model_dir=reference_model"]):
        assert fill_masks.main(["fill_masks", f"--text={TEXT}", *model]) == 0
        shown = capsys.readouterr().out.splitlines()
        note = [f"note: the model is {REFERENCE_MODEL}; --model_dir chooses another"]
        assert shown[:-3] == ([] if model else note)
        guesses.append(shown[-3:])
    assert guesses[0] == guesses[1] == guesses[2]
    assert guesses[0][0] == TEXT and guesses[0][1].count("%") == 5
    # An empty flag names no model.
    assert fill_masks.main(["fill_masks", "--text=[MASK]", "--model_dir="]) == 1
    assert "--model_dir must be a folder. Received: " in one_line(capsys)


def test_features_use_it(tmp_path, capsys):
    (tmp_path / "text.txt").write_text("나는 학교에 갔다.\n", encoding="utf-8")
    argv = ["x", f"--input_file={tmp_path}/text.txt", f"--output_file={tmp_path}/x.npz"]
    argv += ["--layers=-1", "--max_seq_length=16"]
    assert extract_features.main(argv) == 0
    assert f"note: the model is {REFERENCE_MODEL};" in capsys.readouterr().out
    for flag in ("tokenizer_dir", "vocab_file"):
        path = tmp_path / "text.txt" if flag == "vocab_file" else tmp_path
        assert extract_features.main([*argv, f"--{flag}={path}"]) == 1
        assert f"a tokenizer must be given with its model. Received: {path}" in one_line(capsys)


def test_its_files_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("reference_model", "reference_model/vocab.txt"):
        assert find_input(name) == str(ROOT / name)
    for name in ("reference_model/none", "other/vocab.txt", "reference_models"):
        assert find_input(name) == name
    (tmp_path / "reference_model").mkdir()  # the reader's own comes first
    assert find_input("reference_model") == "reference_model"


# Prints ids and logits of a text in JSON, by the lines of the model card; torch and TensorFlow do
# not run in one process.
TRANSFORMERS = """
import json, re, sys
path, text = sys.argv[1:]
card = open(f"{path}/README.md", encoding="utf-8").read()
blocks = re.findall("```python\\n(.*?)```", card, re.S)
(block,) = (block for block in blocks if "path/of/this/folder" in block)
exec(block.replace("path/of/this/folder", path))
inputs = tokenizer(text, return_tensors="pt")
logits = model(**inputs)[0].detach().numpy()
print(json.dumps([inputs["input_ids"].tolist(), str(logits.dtype), logits.tolist()]))
"""


@pytest.mark.slow
@needs_torch
def test_transformers_loads_it(loaded, tmp_path):
    text = "나는 어제 친구와 영화를 보고 ㅋㅋ 웃었다!"
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    run = run_python("-c", TRANSFORMERS, REFERENCE_MODEL, text, env=environment)
    assert run.returncode == 0, run.stderr
    ids, dtype, logits = json.loads(run.stdout)
    tokenizer = loaded.tokenizer
    assert ids == [[tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id]]
    assert dtype == "float32"
    positions = np.arange(len(ids[0]))[None]
    ours = loaded.model({"input_ids": np.array(ids), "masked_lm_positions": positions})
    np.testing.assert_allclose(ours["masked_lm_logits"], logits, atol=1e-4)
