"""Rows of a new vocabulary: kept by piece, else the mean of what the old tokenizer would use."""

import unicodedata

import numpy as np
import pytest

from model_formats.adaptation.new_rows import (
    NewRow,
    draw_all_new,
    new_embeddings,
    new_output_bias,
    plan_rows,
    typical_rows,
)
from model_formats.adaptation.positions import interpolate, repeat
from model_formats.adaptation.spelling import spelling_of
from tests.support.models.released_models import SPM_MODEL
from tests.support.paths import TEST_DATA
from tests.support.sentencepiece_models import NAMES, train
from tests.support.vocabularies import SPECIAL, write_tokenizer
from tokenization import FullTokenizer, SentencePieceTokenizer, load_tokenizer

OLD = [*SPECIAL, "[unused1]", "대", "##대", "##출", "금리", "##금리", "학교", "는", "##는"]
OLD += [".", "a"]


def make_tokenizer(folder, pieces, kind="korean", **options):
    return load_tokenizer(write_tokenizer(folder, pieces, kind, **options))


@pytest.fixture
def old(tmp_path):
    return make_tokenizer(tmp_path / "old", OLD)


def sources(rows, old):
    """Token of a row -> (its kind, the old pieces)."""
    return {row.token: (row.kind, [old.inv_vocab[i] for i in row.sources]) for row in rows}


def test_rows_by_piece(tmp_path, old):
    """The same order of calls as a hand would do: look the piece up, else cut its text."""
    new = [
        "[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]", "학교", "##는", "대출", "대출금리",
        "##대출", "##학교", "뷁", "[unused1]", "[unused2]", ".", "##.", "학교뷁",
    ]  # fmt: skip
    found = sources(plan_rows(old, make_tokenizer(tmp_path / "new", new)), old)
    assert list(found) == new
    for token in (*SPECIAL, "학교", "##는", "[unused1]", "."):
        assert found[token] == ("kept", [token])
    assert found["대출"] == ("averaged", ["대", "##출"])
    assert found["대출금리"] == ("averaged", ["대", "##출", "##금리"])
    assert found["##대출"] == ("averaged", ["##대", "##출"])  # not "대"
    # The old vocabulary has "학교" at the beginning of words alone: better than nothing.
    assert found["##학교"] == ("averaged", ["학교"])
    for token in ("뷁", "[unused2]", "학교뷁"):  # its whole word is [UNK]
        assert found[token] == ("random", [])
    assert found["##."] == ("kept", ["."])  # "." is a word of its own wherever it is


def test_unknown_characters_are_left_out(tmp_path):
    old = make_tokenizer(tmp_path / "old", OLD, unknown="character")
    new = make_tokenizer(tmp_path / "new", [*SPECIAL, "학교뷁", "뷁"], unknown="character")
    found = sources(plan_rows(old, new), old)
    assert found["학교뷁"] == ("averaged", ["학교"])
    assert found["뷁"] == ("random", [])


def test_special_tokens_by_their_part(tmp_path):
    """ALBERT's <pad> and <unk> are another vocabulary's [PAD] and [UNK]."""
    old = SentencePieceTokenizer(str(SPM_MODEL))
    new = make_tokenizer(tmp_path / "new", [*SPECIAL, "x"])
    rows = plan_rows(old, new)
    assert [row.sources for row in rows[:5]] == [
        (old.pad_id,), (old.unk_id,), (old.cls_id,), (old.sep_id,), (old.mask_id,)
    ]  # fmt: skip
    assert all(row.kept for row in rows[:5])


def test_sentencepiece_to_wordpiece(tmp_path):
    """The piece "▁안" begins a word, "녕" is inside one; a comma is a word anywhere."""
    old = SentencePieceTokenizer(str(SPM_MODEL))
    assert old.tokenize("안녕 하세요") == ["▁안", "녕", "▁", "하", "세요"]
    new = [*SPECIAL, "안", "##녕", "안녕", "##안", "##녕하세요", "하", ",", "韓", "ᚠ"]
    found = sources(plan_rows(old, make_tokenizer(tmp_path / "new", new)), old)
    assert found["안"] == ("kept", ["▁안"])
    assert found["##녕"] == ("kept", ["녕"])
    assert found["안녕"] == ("averaged", ["▁안", "녕"])
    assert found["하"] == ("averaged", ["▁", "하"])
    assert found["韓"] == ("kept", ["韓"])  # in a model it may be anywhere in a word
    assert found["ᚠ"] == ("random", [])
    assert old.tokenize("가녕하세요") == ["▁", "가", "녕", "하", "세요"]
    assert found["##녕하세요"] == ("averaged", ["녕", "하", "세요"])
    assert found[","][1] == [token for token in (",", "▁,") if token in old.vocab]
    assert all("▁" not in token for token in found["##안"][1])


def test_a_sentencepiece_model_with_bytes(tmp_path):
    """Inside a word without the space that begins it, although no character is unknown."""
    lines = ["학교 에서 는 학교에서 집에서 나는 너는 에서는 물에서 일에서"] * 50
    path = train(tmp_path / "m.model", lines, vocab_size=290, byte_fallback=True, **NAMES)
    old = SentencePieceTokenizer(path)
    assert old.tokenize("물에서는 에서는") == ["▁", "물", "에서", "는", "▁에서", "는"]
    new = [*SPECIAL, "에서는", "##에서는", "##뷁"]
    found = sources(plan_rows(old, make_tokenizer(tmp_path / "new", new)), old)
    assert found["에서는"] == ("averaged", ["▁에서", "는"])
    assert found["##에서는"] == ("averaged", ["에서", "는"])
    assert found["##뷁"] == ("averaged", ["<0xEB>", "<0xB7>", "<0x81>"])


def test_wordpiece_to_sentencepiece(old):
    new = SentencePieceTokenizer(str(SPM_MODEL))
    found = sources(plan_rows(old, new), old)
    assert found["."] == ("kept", ["."])
    assert found["는"] == ("kept", ["##는"]) and found["▁a"] == ("kept", ["a"])
    assert found["▁"] == ("random", [])
    assert len(found) == new.vocab_size == 1600


def test_what_a_scheme_leaves_open(tmp_path, old):
    """Without a prefix a piece may be anywhere in a word: both old rows count."""
    options = {"continuation_prefix": "", "word_end_marker": "_"}
    new = make_tokenizer(tmp_path / "new", [*SPECIAL, "는", "금리_", "대출_"], **options)
    found = sources(plan_rows(old, new), old)
    assert found["는"] == ("averaged", ["는", "##는"])
    assert found["금리_"] == ("averaged", ["금리", "##금리"])
    assert found["대출_"] == ("averaged", ["대", "##출", "##대", "##출"])
    # The other way: a piece of "##" does not say whether it ends a word.
    back = sources(plan_rows(new, old), new)
    assert back["금리"] == back["##금리"] == ("kept", ["금리_"])


def test_two_schemes_with_markers(tmp_path):
    """A token without the marker does not end a word."""
    options = {"word_end_marker": "_"}
    pieces = [*SPECIAL, "금리", "금리_", "##는_", "##_"]
    old = make_tokenizer(tmp_path / "old", pieces, **options)
    new = [*SPECIAL, "금리", "금리_", "금리는_", "_", "##"]
    new = make_tokenizer(tmp_path / "new", new, continuation_prefix="", **options)
    found = sources(plan_rows(old, new), old)
    for token, same in (("금리", "금리"), ("금리_", "금리_"), ("_", "##_")):
        assert found[token] == ("kept", [same])
    assert found["금리는_"] == ("averaged", ["금리", "##는_"])
    # The prefix by itself is no piece without a text.
    plain = make_tokenizer(tmp_path / "plain", [*SPECIAL, "##"])
    assert sources(plan_rows(plain, new), plain)["_"] == ("random", [])
    assert sources(plan_rows(new, plain), new)["##"] == ("kept", ["##"])


def test_jamo_of_a_lower_casing_tokenizer(tmp_path):
    """It decomposes Hangul: a piece of syllables is cut as the tokenizer would see it."""
    jamo = [unicodedata.normalize("NFD", token) for token in ("나", "##는")]
    old = make_tokenizer(tmp_path / "old", [*SPECIAL, *jamo, "bank"], "full")
    assert isinstance(old, FullTokenizer)
    new = make_tokenizer(tmp_path / "new", [*SPECIAL, "나는", "Bank", "Banks"])
    found = sources(plan_rows(old, new), old)
    assert found["나는"] == ("averaged", jamo)
    assert found["Bank"] == ("averaged", ["bank"])
    assert found["Banks"] == ("random", [])


def test_a_tokenizer_of_transformers(tmp_path, old):
    """Its options have other names; a symbol such as $ is a word of its own there too."""
    folder = TEST_DATA / "huggingface_tokenizers" / "version_4_both"
    new = load_tokenizer(folder)
    assert new.kind == "huggingface"
    assert spelling_of(new).scheme == spelling_of(old).scheme
    assert all(row.kept for row in plan_rows(new, new))
    unsplit = make_tokenizer(tmp_path / "unsplit", OLD, split_chinese_characters=False)
    assert spelling_of(unsplit).scheme != spelling_of(old).scheme
    assert spelling_of(unsplit).read("中").begins is True
    assert spelling_of(old).read("中").begins is None


def test_the_arithmetic(old):
    rng, size = np.random.default_rng(0), len(OLD) + 2  # with two spare rows
    table, bias = (rng.normal(size=s).astype(np.float32) for s in ((size, 4), size))
    rows = [NewRow("a", (3,), kept=True), NewRow("b", (1, 1, 7)), NewRow("c", ())]
    rows += [NewRow("d", (7, 3))]
    typical = typical_rows(old)
    assert [old.inv_vocab[i] for i in typical] == OLD[6:]  # neither special nor unused ones
    new = new_embeddings(table, rows, typical, np.random.default_rng(1))
    np.testing.assert_array_equal(new[0], table[3])
    np.testing.assert_allclose(new[1], (2 * table[1] + table[7]) / 3, rtol=1e-6)
    assert new.dtype == np.float32 and new.shape == (4, 4)
    new_bias = new_output_bias(bias, rows, typical)
    assert new_bias[0] == bias[3]
    half = np.log(2)  # two rows have 7 as a source, two have 3
    expected = [
        bias[3],
        (2 * bias[1] + bias[7] - half) / 3,
        bias[6 : len(OLD)].mean(),
        (bias[7] + bias[3]) / 2 - half,
    ]
    np.testing.assert_allclose(new_bias, expected, rtol=1e-6)


def test_random_rows_are_like_typical_ones(old):
    rng = np.random.default_rng(0)
    table = rng.normal((5.0, -1.0), (2.0, 0.1), (len(OLD), 2)).astype(np.float32)
    table[:6] = 1e6  # special and unused rows count for nothing
    rows = draw_all_new([NewRow("a", (7,), kept=True)] + [NewRow("b", (7, 8))] * 4000)
    new = new_embeddings(table, rows, typical_rows(old), np.random.default_rng(1))
    np.testing.assert_array_equal(new[0], table[7])
    # 4,000 draws: the mean is within 5 standard errors, 0.08 of a standard deviation.
    np.testing.assert_allclose(new[1:].mean(0), table[6:].mean(0), atol=0.08 * 2)
    np.testing.assert_allclose(new[1:].std(0), table[6:].std(0), rtol=0.06)


def test_positions():
    table = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    again = repeat(table, 8)
    np.testing.assert_array_equal(again, table[[0, 1, 2, 0, 1, 2, 0, 1]])
    stretched = interpolate(table, 5)
    expected = [table[0], (table[0] + table[1]) / 2, table[1], (table[1] + table[2]) / 2, table[2]]
    np.testing.assert_allclose(stretched, expected, rtol=1e-6)
    assert again.dtype == stretched.dtype == np.float32
    np.testing.assert_allclose(interpolate(table, 7)[1], table[0] * 2 / 3 + table[1] / 3, rtol=1e-6)
    np.testing.assert_array_equal(interpolate(table[:1], 4), table[[0, 0, 0, 0]])
