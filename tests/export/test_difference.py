"""A fine-tuned model as a low-rank difference from its base: what it holds, what it refuses."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bert_common.errors import InputError
from finetuning.tasks import TASKS
from model_formats import difference_export
from model_formats.difference import split
from model_formats.difference_files import DESCRIPTION_FILE, WEIGHTS_FILE, digest_of
from model_formats.load_folder import load_folder
from model_formats.model_folder import ModelFolder
from tests.support.models.model_folders import change_json, export_folder, write_folder
from tests.support.programs import one_line
from tests.support.tiny_models import weights_of

# Of every matrix of a tiny model: no matrix has more rows and columns.
FULL = 64


def weights(folder):
    return weights_of(load_folder(str(folder)).model)


def write_pair(folder, task="similarity", kind="bert", base="pretraining"):
    """A base, and a model that differs from it in all weights that both have."""
    write_folder(folder / "base", kind, base)
    write_folder(folder / "trained", kind, task)
    return folder


def export(folder, *flags, output="out"):
    """Writes the difference of `write_pair`; returns its folder."""
    flags = f"--base_dir={folder}/base", *flags
    return export_folder(folder / "trained", folder / output, "difference", *flags)


@pytest.fixture
def pair(tmp_path):
    return write_pair(tmp_path)


@pytest.mark.parametrize(
    ("task", "kind", "base"),
    [
        *((task, "bert", "pretraining") for task in TASKS),
        ("classification", "albert", "pretraining"),
        ("ner", "electra", "pretraining"),
        ("classification", "bert", "classification"),  # which lends no head
    ],
)
def test_at_full_rank_it_is_the_model(tmp_path, task, kind, base):
    """Of every task: weights, task, settings, tokenizer, positions."""
    folder = export(write_pair(tmp_path, task, kind, base), f"--rank={FULL}")
    found, expected = weights(folder), weights(tmp_path / "trained")
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-6, rtol=0, err_msg=name)
    opened, trained = ModelFolder.open(str(folder)), ModelFolder.open(str(tmp_path / "trained"))
    assert (opened.task, opened.settings) == (trained.task, trained.settings)
    assert opened.trained_positions == trained.trained_positions
    assert opened.tokenizer.vocab == trained.tokenizer.vocab
    assert not {p.name for p in folder.iterdir()} & {"vocab.txt", "bert_config.json"}


def test_a_higher_rank_loses_less(pair, capsys):
    """As the singular values say, and in a larger file."""
    expected, base = weights(pair / "trained"), weights(pair / "base")
    name = "bert/encoder/layer_0/intermediate/dense/kernel"
    values = np.linalg.svd(expected[name] - base[name], compute_uv=False)
    sizes = []
    for rank in (1, 4, 16):
        folder = export(pair, f"--rank={rank}", output=f"rank{rank}")
        found = weights(folder)
        lost = np.linalg.norm(found[name] - expected[name])
        np.testing.assert_allclose(lost, np.sqrt(np.sum(values[rank:] ** 2)), rtol=1e-4)
        sizes.append((folder / WEIGHTS_FILE).stat().st_size)
        out = capsys.readouterr().out
        assert f"rank {rank}, float32: {sizes[-1]:,} bytes" in out
        lost, changed = (
            sum(np.sum((other[n] - expected[n]) ** 2) for n in base if n.startswith("bert/"))
            for other in (found, base)
        )
        said = float(out.split("difference that is lost: ")[1].split()[0])
        assert said == pytest.approx(np.sqrt(lost / changed), abs=1e-4)
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def test_float16_halves_it(pair):
    whole, half = (
        export(pair, "--rank=4", f"--precision={p}", output=p) for p in ("float32", "float16")
    )
    stored = [load_file(folder / WEIGHTS_FILE).values() for folder in (whole, half)]
    assert {a.dtype for a in stored[1]} == {np.dtype(np.float16)}
    assert sum(a.nbytes for a in stored[0]) == 2 * sum(a.nbytes for a in stored[1])
    found = weights(half)
    for name, value in weights(whole).items():
        np.testing.assert_allclose(found[name], value, atol=2e-3, err_msg=name)


def test_what_did_not_change_is_not_stored(pair, monkeypatch):
    """Tables that a training left alone, for example."""
    kept = "embeddings/word_embeddings"
    google = difference_export.google_variables

    def same(model):
        found = google(model)
        name = next(n for n in found if n.endswith(kept))
        found[name].assign(weights(pair / "base")[name])
        return found

    monkeypatch.setattr(difference_export, "google_variables", same)
    stored = load_file(export(pair) / WEIGHTS_FILE)
    assert stored and not any(kept in name for name in stored)


def test_a_folder_may_be_moved_with_its_base(pair, tmp_path):
    export(pair)
    shutil.copytree(pair / "base", tmp_path / "new/base")
    shutil.copytree(pair / "out", tmp_path / "new/out")
    assert weights(tmp_path / "new/out").keys() == weights(pair / "trained").keys()
    shutil.rmtree(tmp_path / "new/base")
    with pytest.raises(InputError, match="the base of .*new/out must be a folder"):
        load_folder(str(tmp_path / "new/out"))


def test_a_link_to_the_folder(pair, tmp_path):
    """In another folder, from which the base is not where it is from the folder itself."""
    (tmp_path / "links").mkdir()
    link = tmp_path / "links/newest"
    link.symlink_to(export(pair))
    assert weights(link).keys() == weights(pair / "trained").keys()


def test_another_base_is_refused(pair):
    folder = export(pair)
    (path,) = (pair / "base").glob("*.data-00000-of-00001")
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="must have the weights that it was made from, sha256"):
        load_folder(str(folder))


def test_a_digest_is_of_all_shards(tmp_path):
    for name, value in (("a", 1.0), ("b", 2.0)):
        save_file({name: np.full(2, value, np.float32)}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps(index))
    before = digest_of(str(path))
    save_file({"b": np.full(2, 3.0, np.float32)}, tmp_path / "b.safetensors")
    assert digest_of(str(path)) != before
    assert digest_of(str(tmp_path / "a.safetensors")) != before


def test_bad_descriptions(pair):
    folder = export(pair)
    for text, message in (
        ("[]", "must hold version 1. Received: None"),
        ('{"version": 2}', "must hold version 1. Received: 2"),
        ('{"version": 1, "base": "../base", "rank": 3}', "must hold base, a path"),
    ):
        (folder / DESCRIPTION_FILE).write_text(text)
        with pytest.raises(InputError, match=message):
            load_folder(str(folder))


def test_a_base_holds_all_weights(pair):
    folder = export(pair)
    change_json(folder / DESCRIPTION_FILE, base=".")
    with pytest.raises(InputError, match="must hold all weights. Received: .*a difference itself"):
        load_folder(str(folder))


def test_weights_that_fit_no_base(pair):
    folder = export(pair, "--rank=3")
    stored = load_file(folder / WEIGHTS_FILE)
    left = next(name for name in stored if name.endswith("/left"))
    right, new = (left.replace("/left", part) for part in ("/right", "/new"))
    zeros = np.zeros(3, np.float32)
    others = {name: array for name, array in stored.items() if name not in (left, right)}
    for arrays in (
        {**stored, left: stored[left][:, :2].copy()},
        {**stored, "nothing/whole": zeros},
        {**stored, new: zeros},
        {**others, new: zeros},
    ):
        save_file(arrays, folder / WEIGHTS_FILE)
        with pytest.raises(InputError, match="must hold what fits its base"):
            load_folder(str(folder))


# === What is refused ===


def test_weights_that_have_no_difference():
    """Those that are not finite are the model's, a head's that the base lacks, or the base's."""
    ones, infinite = np.ones((3, 3)), np.full((3, 3), np.inf)
    for weights, of_base, message in (
        ({"bert/a": ones[:1]}, ones, r"the same shapes. Received: bert/a \[3, 3\] for \[1, 3\]"),
        ({"bert/a": infinite}, ones, "needs finite weights. Received: .* in bert/a"),
        ({"bert/a": ones, "head/a": infinite}, ones, "finite weights. Received: .* in head/a"),
        ({"bert/a": ones}, infinite, "finite weights. Received: .* in bert/a"),
    ):
        base = SimpleNamespace(shapes={"bert/a": [3, 3]}, read=lambda _, found=of_base: found)
        with pytest.raises(InputError, match=message):
            split(weights, base, "bert/", 2)


def contents(folder):
    return {path: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "model, form", [("base", "google"), ("trained", "difference"), ("out", "google")]
)
def test_an_export_replaces_nothing_that_it_reads(pair, capsys, model, form):
    """The model, its base, the base of a difference, not even if it is an earlier export."""
    export_folder(pair / "base", pair / "google", "google")
    shutil.rmtree(pair / "base")
    (pair / "google").rename(pair / "base")
    export(pair)
    before = contents(pair / "base")
    flags = [f"--base_dir={pair}/base"] * (form == "difference")
    capsys.readouterr()
    export_folder(pair / model, pair / "base", form, *flags, status=1)
    assert "--output_dir must be another folder than the model's" in one_line(capsys)
    assert contents(pair / "base") == before


def test_what_no_difference_is_made_of(pair, tmp_path, capsys):
    base, first = f"--base_dir={pair}/base", export(pair)
    write_folder(tmp_path / "wide", sizes={"intermediate_size": 96})
    write_folder(tmp_path / "other")
    vocabulary = tmp_path / "other/vocab.txt"
    vocabulary.write_text(vocabulary.read_text().replace("book", "news"))
    write_folder(tmp_path / "korean")
    (tmp_path / "korean/tokenizer_config.json").write_text('{"kind": "korean"}')
    capsys.readouterr()
    for model, flags, message in (
        ("trained", [], "needs --base_dir. Received: none"),
        ("base", [base], "needs a fine-tuned model"),
        ("trained", [base, "--generator"], "--generator must be off with --format=difference"),
        ("trained", [f"--base_dir={first}"], "a difference itself"),
        ("trained", [f"--base_dir={tmp_path}/wide"], "the same configuration"),
        ("trained", [f"--base_dir={tmp_path}/other"], "the same tokenizer"),
        ("trained", [f"--base_dir={tmp_path}/korean"], "the same tokenizer"),
        ("trained", [base, "--rank=0"], "--rank must be"),
        ("trained", [base, "--precision=int8"], "--precision=int8 must be given with"),
    ):
        export_folder(pair / model, tmp_path / "refused", "difference", *flags, status=1)
        assert message in one_line(capsys)
        assert not (tmp_path / "refused").exists()
