"""Texts are compared, found and clustered by the cosines of their vectors."""

import sys

import numpy as np
import pytest

from bert_common.errors import InputError
from korean_bert import load_model
from korean_bert.results import Hit
from tests.support.models.model_folders import write_folder

TEXTS = ["배송이 너무 늦어요", "날씨가 좋네요", "택배가 안 와요", "배송이 너무 늦어요", "비가 온다"]


@pytest.fixture(scope="module")
def model():
    return load_model()


@pytest.fixture(scope="module")
def vectors(model):
    return model.embed(TEXTS)


def test_similarity(model, vectors, tmp_path):
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = (units[:2] @ units.T).tolist()
    for one, other in ((TEXTS[:2], TEXTS), (iter(TEXTS[:2]), iter(TEXTS))):
        np.testing.assert_allclose(model.similarity(one, other), expected, atol=1e-6)
    np.testing.assert_allclose(model.similarity(TEXTS[0], vectors), expected[0], atol=1e-6)
    np.testing.assert_allclose(model.similarity(vectors, TEXTS[1]), expected[1], atol=1e-6)
    one = model.similarity(TEXTS[0], TEXTS[1])
    assert isinstance(one, float) and one == pytest.approx(expected[0][1], abs=1e-6)
    np.save(tmp_path / "v.npy", vectors)
    found = model.similarity(tmp_path / "v.npy", vectors[0])
    np.testing.assert_allclose(found, expected[0], atol=1e-6)


def test_texts_beside_vectors_of_a_trained_size(tmp_path):
    """They are cut as these are; to no size that was not trained."""
    write_folder(tmp_path / "model", task="similarity", embedding_sizes="8,16")
    model = load_model(tmp_path / "model")
    texts = ["the book is red", "나는 학교에 갔다", "book red"]
    cut = model.embed(texts)[:, :8]
    units = cut / np.linalg.norm(cut, axis=1, keepdims=True)
    expected = units @ units.T
    np.save(tmp_path / "v.npy", cut)
    for given in (cut, tmp_path / "v.npy"):
        np.testing.assert_allclose(model.similarity(given, texts), expected, atol=1e-6)
        np.testing.assert_allclose(model.similarity(texts[1], given), expected[1], atol=1e-6)
        hits = model.search(texts[1], given)
        assert [hit.place for hit in hits] == np.argsort(-expected[1]).tolist()
        np.testing.assert_allclose([h.score for h in hits], -np.sort(-expected[1]), atol=1e-6)
        assert model.search(given, texts, 1)[2][0].place == 2
    for wrong in (cut[:, :4], model.embed(texts)[:, :9]):
        with pytest.raises(InputError, match="vectors that are compared must have one size"):
            model.search(texts[0], wrong)


@pytest.mark.parametrize("kind", ["texts", "one by one", "array", "path", "home", "map"])
def test_search_of_every_kind_of_corpus(model, vectors, tmp_path, monkeypatch, kind):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / "v.npy"
    np.save(path, 3 * vectors)  # lengths do not matter
    corpora = {
        "texts": lambda: TEXTS,
        "one by one": lambda: iter(TEXTS),
        "array": lambda: 3 * vectors,
        "path": lambda: path,
        "home": lambda: "~/v.npy",
        "map": lambda: np.load(path, mmap_mode="r"),
    }
    corpus = corpora[kind]
    hits = model.search(TEXTS[0], corpus(), top=3)
    assert [hit.place for hit in hits[:2]] == [0, 3]
    assert hits[0].score == pytest.approx(1, abs=1e-6)
    assert hits[0].text == (TEXTS[0] if kind in ("texts", "one by one") else None)
    several = model.search(iter([TEXTS[0], TEXTS[4]]), corpus(), top=9)
    assert [len(each) for each in several] == [5, 5] and several[1][0].place == 4
    assert isinstance(several[0][0], Hit)


def test_texts_are_clustered(model, vectors, tmp_path):
    labels = model.cluster(TEXTS, 3)
    assert labels.shape == (5,) and labels.dtype.kind == "i" and {*labels} == {0, 1, 2}
    assert labels[0] == labels[3]  # the same text
    np.save(tmp_path / "v.npy", vectors)
    lengths = np.arange(1, 6, dtype=np.float32)[:, None]  # they do not matter
    for given in (iter(TEXTS), vectors * lengths, tmp_path / "v.npy"):
        np.testing.assert_array_equal(model.cluster(given, np.int64(3)), labels)
    assert [*model.cluster(TEXTS, 1)] == [0] * 5
    assert {*model.cluster(vectors[[0, 1, 2, 4]], 4)} == {0, 1, 2, 3}


def test_a_seed_gives_one_result(model):
    """Of vectors without groups, where k-means ends elsewhere from other starts."""
    drawn = np.random.default_rng(0).standard_normal((300, 8), np.float32)
    found = [model.cluster(drawn, 9, seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(found[0], model.cluster(drawn, 9))
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_cluster_without_scikit_learn(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(InputError, match=r"cluster needs sklearn, .*'\.\[finetune\]'\. Received: "):
        model.cluster(TEXTS, 2)


def test_files_without_an_array(model, tmp_path):
    path = tmp_path / "v.npy"
    np.savez(tmp_path / "v.npz", made=np.ones(2))
    np.save(tmp_path / "whole.npy", np.ones((2, 3)))
    header = (tmp_path / "whole.npy").read_bytes()
    damaged = [
        header.replace(*change)
        for change in ((b"}", b" "), (b"'descr'", b"b'escr'"), (b"'<f8', ", b"'01f8',"))
    ]
    for content in ((tmp_path / "v.npz").read_bytes(), b"PK\x03\x04cut", *damaged):
        path.write_bytes(content)
        with pytest.raises(InputError, match="v.npy must be an array of NumPy. Received"):
            model.search("가", path)
