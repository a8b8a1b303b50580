"""Models of vectors go to sentence-transformers' folders and come back with the same vectors."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from bert_common.errors import InputError
from korean_bert import load_model
from model_formats.huggingface.export import export
from tests.support.libraries import needs, needs_torch
from tests.support.models.model_folders import change_json, export_folder, write_folder
from tests.support.paths import run_python
from tokenization import KoreanTokenizer

PROGRAM = Path(__file__).with_name("sentence_vectors.py")
needs_sentences = needs("torch", "transformers", "sentence_transformers", extra="bench")

# The last is longer than the models' rows.
TEXTS = ["the book is red.", "나는 학교에 갔다.", "is the book reds?", "나는 the 학교에 " * 9]

# Folder -> encoder, pooling, whether vectors have length 1, the sizes that they may be cut to.
FOLDERS = {
    "mean": ("bert", "mean", True, "8,16"),
    "cls": ("albert", "cls", False, None),
    "max": ("electra", "max", True, "32,4"),
}
# Of each, --embedding_sizes as an export gives it back, and what its config.json records.
SIZES = {"mean": ("16,8", [32, 16, 8]), "cls": (None, None), "max": ("4", [32, 4])}
TOLERANCE = 1e-5


def compute(folder, jobs):
    """The vectors of every job of `sentence_vectors`."""
    jobs = [
        {"texts": TEXTS, **job, "outputs": str(folder / f"{i}.npy")} for i, job in enumerate(jobs)
    ]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    done = run_python(PROGRAM, folder / "jobs.json")
    assert done.returncode == 0, done.stderr[-3000:]
    return [np.load(job["outputs"]) for job in jobs]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Name -> the folder as run_similarity writes it, and its export."""
    found = {}
    for name, (kind, pooling, normalize, sizes) in FOLDERS.items():
        top = tmp_path_factory.mktemp(name)
        settings = {"pooling": pooling, "normalize": normalize, "max_seq_length": 12}
        settings["embedding_sizes"] = sizes
        write_folder(top / "ours", kind, "similarity", **settings)
        found[name] = top / "ours", export_folder(top / "ours", top / "theirs")
    return found


def assert_lengths(vectors, normalize):
    lengths = np.linalg.norm(vectors, axis=-1)
    assert np.allclose(lengths, 1, atol=1e-6) == normalize


@pytest.mark.parametrize(
    "library",
    [
        pytest.param(False, marks=needs_torch, id="step by step"),
        pytest.param(True, marks=[needs_sentences, pytest.mark.slow], id="the library"),
    ],
)
def test_what_an_export_says_gives_our_vectors(folders, tmp_path, library):
    jobs = [{"folder": str(theirs), "library": library} for _, theirs in folders.values()]
    for name, vectors in zip(folders, compute(tmp_path, jobs), strict=True):
        expected = load_model(folders[name][0]).embed(TEXTS)
        np.testing.assert_allclose(vectors, expected, atol=TOLERANCE, err_msg=name)
        assert_lengths(vectors, FOLDERS[name][2])


@needs_sentences
@pytest.mark.slow
def test_the_library_cuts_vectors_and_keeps_their_sizes(folders, tmp_path):
    """To the size that it is asked for; the folder that it saves says which were trained."""
    ours, theirs = folders["mean"]
    job = {"folder": str(theirs), "library": True, "truncate_dim": 8}
    (vectors,) = compute(tmp_path, [{**job, "resaved": str(tmp_path / "saved")}])
    np.testing.assert_allclose(vectors, load_model(ours).embed(TEXTS)[:, :8], atol=TOLERANCE)
    assert load_model(tmp_path / "saved").loaded.model.sizes == (32, 16, 8)


@needs_sentences
@pytest.mark.slow
def test_folders_that_the_library_saves_are_read(tmp_path):
    """Of another pooling each, from an encoder that transformers reads."""
    write_folder(tmp_path / "ours")
    hub = export_folder(tmp_path / "ours", tmp_path / "hub")
    shared = {"folder": str(hub), "library": True, "length": 10}
    cases = [("mean", True), ("cls", True), ("max", False)]
    jobs = [
        {**shared, "saved": str(tmp_path / pooling), "pooling": pooling, "normalize": normalize}
        for pooling, normalize in cases
    ]
    for (pooling, normalize), vectors in zip(cases, compute(tmp_path, jobs), strict=True):
        model = load_model(tmp_path / pooling)
        assert (model.loaded.task, model.pooling, model.max_length) == ("similarity", pooling, 10)
        np.testing.assert_allclose(model.embed(TEXTS), vectors, atol=TOLERANCE, err_msg=pooling)
        assert_lengths(vectors, normalize)


@pytest.mark.parametrize("name", FOLDERS)
def test_an_export_comes_back(folders, name):
    ours, theirs = (load_model(folder) for folder in folders[name])
    assert theirs.loaded.task == "similarity"
    kept = ("pooling", "normalize", "max_seq_length")
    assert [theirs.loaded.settings[k] for k in kept] == [ours.loaded.settings[k] for k in kept]
    np.testing.assert_array_equal(theirs.embed(TEXTS), ours.embed(TEXTS))
    sizes, recorded = SIZES[name]
    assert theirs.loaded.settings["embedding_sizes"] == sizes
    assert theirs.loaded.model.sizes == ours.loaded.model.sizes
    config = json.loads((folders[name][1] / "config.json").read_text())
    assert config.get("matryoshka_dimensions") == recorded
    pair = [(TEXTS[0], TEXTS[1])]
    assert theirs.predict(pair)[0].label == ours.predict(pair)[0].label
    card = (folders[name][1] / "README.md").read_text()
    assert "model = SentenceTransformer(" in card and "sentence-similarity" in card


def test_the_way_to_load_it_trusts_code_only_where_there_is_some(folders, tmp_path):
    """What the export prints is what the card says."""
    loaded = load_model(folders["mean"][0]).loaded
    tokenizers = {"json": loaded.tokenizer, "none": None}
    path = folders["mean"][0] / "vocab.txt"
    tokenizers["code"] = KoreanTokenizer(path, unknown="character")
    for name, tokenizer in tokenizers.items():
        (tmp_path / name).mkdir()
        way = export(dataclasses.replace(loaded, tokenizer=tokenizer), str(tmp_path / name))
        more = ", trust_remote_code=True" if name == "code" else ""
        assert way.startswith(f"sentence_transformers.SentenceTransformer('{{folder}}'{more}); ")
        card = (tmp_path / name / "README.md").read_text()
        assert f'model = SentenceTransformer("path/of/this/folder"{more})' in card


@pytest.mark.parametrize(
    ("path", "values", "message"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 2}, "must be a number from 3 on"),
        ("sentence_bert_config.json", [], "must hold an object. Received: list"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "lower-case your texts"),
        ("config_sentence_transformers.json", {"default_prompt_name": "query"}, "put the prompt"),
        ("config_sentence_transformers.json", {"truncate_dim": 8}, "cut the vectors, .*: 8"),
        ("1_Pooling/config.json", {"pooling_mode": ["cls", "mean"]}, "choose one pooling"),
        ("1_Pooling/config.json", {"pooling_mode": 3}, "choose one pooling"),
    ],
)
def test_what_would_give_other_vectors_is_refused(folders, tmp_path, path, values, message):
    folder = shutil.copytree(folders["mean"][1], tmp_path / "copy")
    (folder / path).write_text(json.dumps(values))
    with pytest.raises(InputError, match=message):
        load_model(folder).embed(TEXTS)


@pytest.mark.parametrize("sizes", [8, [8, 64], [0], [8.0], [True], ["8"]])
def test_sizes_that_no_vector_has_are_refused(folders, tmp_path, sizes):
    folder = shutil.copytree(folders["mean"][1], tmp_path / "copy")
    change_json(folder / "config.json", matryoshka_dimensions=sizes)
    with pytest.raises(InputError, match="matryoshka_dimensions must list whole numbers from 1 to"):
        load_model(folder)
