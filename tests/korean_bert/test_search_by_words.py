"""Texts are found by the words that they share."""

import sys

import numpy as np
import pytest

from bert_common.errors import InputError
from finetuning import metrics
from finetuning.similarity.lexical import Bm25, known_tokens
from finetuning.similarity.ranking import unit_vectors
from korean_bert import load_model
from run_scripts.tools.search import main
from tests.support.models.model_folders import write_folder
from tests.support.programs import one_line

TEXTS = ["배송이 너무 늦어요", "날씨가 좋네요", "택배가 안 와요", "배송이 너무 늦어요", "비가 온다"]


@pytest.fixture(scope="module")
def model():
    return load_model()


def test_search_by_words(model):
    """By shared tokens, alone and together with the vectors."""
    by_words = model.search(["배송이 늦네요", "비"], iter(TEXTS), top=5, method="bm25")
    expected = Bm25(TEXTS, known_tokens(model.tokenizer))(["배송이 늦네요", "비"])
    for row, hits in zip(expected, by_words, strict=True):
        assert [hit.score for hit in hits] == sorted(row.tolist(), reverse=True)
        assert all(hit.score == row[hit.place] and hit.text == TEXTS[hit.place] for hit in hits)
    assert [hit.place for hit in by_words[0][:2]] == [0, 3]
    asked = model.embed(["택배가 늦어요"])
    both = Bm25(TEXTS, known_tokens(model.tokenizer)).search_with_vectors(
        ["택배가 늦어요"], unit_vectors(asked), unit_vectors(model.embed(TEXTS)), 3
    )
    hits = model.search("택배가 늦어요", TEXTS, top=3, method="hybrid")
    assert [hit.place for hit in hits] == both.places[0].tolist()
    np.testing.assert_allclose([hit.score for hit in hits], both.scores[0], atol=1e-5)
    for method in ("bm25", "hybrid"):
        assert model.search("비", [], method=method) == []
        assert model.search([], TEXTS, method=method) == []


def test_unknown_characters_are_no_shared_word(model):
    """Of other scripts, all characters are [UNK]."""
    texts = ["𓀀 집", "비가 온다", "鬱 집"]
    assert [hit.score for hit in model.search("𓁐", texts, method="bm25")] == [0, 0, 0]
    first, _, third = model.search("𓁐 집", texts, method="bm25")
    assert [first.place, third.score] == [0, 0] and first.score > 0


def test_words_need_their_libraries(model, tmp_path, capsys, monkeypatch):
    """The message names the search, which is no evaluation."""
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(InputError, match=r"^BM25 needs sklearn, .*'\.\[finetune\]'\. Received: "):
        model.search("비", TEXTS, method="bm25")
    monkeypatch.setattr(metrics, "LIBRARIES", ("sklearn", "no_library"))
    (tmp_path / "faq.txt").write_text("비가 온다\n")
    assert main(["search", f"--corpus={tmp_path}/faq.txt", "--query=비", "--method=bm25"]) == 1
    message = one_line(capsys)
    assert message.startswith("error: --method=bm25 needs sklearn, ")
    assert message.endswith("Received: no no_library")


def test_the_program_searches_by_words(tmp_path, capsys):
    write_folder(tmp_path / "model", task="similarity")
    corpus = tmp_path / "faq.txt"
    corpus.write_text("나는 학교에 갔다\nthe book\nred\n")
    flags = (f"--corpus={corpus}", f"--model_dir={tmp_path}/model", "--query=book", "--top=1")
    for method in ("bm25", "hybrid"):
        assert main(["search", *flags, f"--method={method}"]) == 0
        (found,) = [row.split("\t") for row in capsys.readouterr().out.splitlines()]
        assert found[1] == "the book" and float(found[0]) > 0
        assert (tmp_path / "faq.txt.vectors.npz").exists() == (method == "hybrid")
