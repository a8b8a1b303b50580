"""Decoding gives the same pieces again; offsets point into the original text."""

import itertools

import pytest
import tensorflow as tf

from tests.support.paths import TEST_DATA

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")

from hypothesis import given, settings  # noqa: E402

from tests.support.crosses import slow  # noqa: E402
from tests.support.refusals import refused  # noqa: E402
from tests.support.tokenizer_cases import (  # noqa: E402
    ANY_TEXT,
    TEXTS,
    check_offsets,
    check_round_trip,
    full_tokenizers,
    korean_tokenizers,
)
from tests.support.vocabularies import write_pieces  # noqa: E402
from tokenization import KoreanTokenizer, SentencePieceTokenizer  # noqa: E402

DATA = TEST_DATA / "tokenization"
EXAMPLES = settings(max_examples=150, derandomize=True, deadline=None, database=None)


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    return [*korean_tokenizers(folder), *full_tokenizers(folder)]


@pytest.mark.parametrize("check", [check_round_trip, check_offsets])
def test_any_text(tokenizers, check):
    def every_tokenizer(text):
        for _, tokenizer in tokenizers:
            check(tokenizer, text)

    for text in TEXTS:
        every_tokenizer(text)
    EXAMPLES(given(ANY_TEXT)(every_tokenizer))()


@pytest.mark.parametrize("mark_final_word", (True, False))
def test_markers_that_a_text_spells(tmp_path, mark_final_word):
    path = write_pieces(tmp_path, ["a", "##a", "_", "##_", "a_", "##__"])
    for unknown, split in itertools.product(("word", "character"), (True, False)):
        tokenizer = KoreanTokenizer(
            path, word_end_marker="_", unknown=unknown, split_punctuation=split,
            mark_final_word=mark_final_word,
        )  # fmt: skip
        for length in range(1, 6):
            for text in map("".join, itertools.product("a_x ", repeat=length)):
                check_round_trip(tokenizer, text)


# === SentencePiece ===

MODELS = [("spm_small.model", True), ("spm_small.model", None), ("spm_digits.model", False)]
SPM_TEXTS = [
    "영화가 재미있다!", " 1999,  2,345,678 ①, ", "韓國 Café\u0301 ﾊﾞ", "\ud800 😁😁 a\u200b",
]  # fmt: skip


def spm_tokenizers():
    return [SentencePieceTokenizer(DATA / name, lower) for name, lower in MODELS]


@pytest.mark.parametrize("check", [check_round_trip, slow(check_offsets)])
def test_sentencepiece(check):
    tokenizers = spm_tokenizers()

    def every_model(text):
        for tokenizer in tokenizers:
            check(tokenizer, text)

    for text in [*SPM_TEXTS, *TEXTS]:
        if len(text) < 100:  # of one character repeated, equal cuts are many
            every_model(text)
    EXAMPLES(given(ANY_TEXT)(every_model))()


def test_sentencepiece_offsets():
    expected = [("▁199", "199"), ("9", "9"), (",", ","), ("▁", " "), ("1", "①")]
    assert spans_of(spm_tokenizers()[2], "  1999, ①") == expected


def test_sentencepiece_batches():
    for tokenizer in spm_tokenizers():
        rows = tokenizer.encode_batch(SPM_TEXTS).to_list()
        assert rows == [tokenizer.encode(text) for text in SPM_TEXTS]
        assert tokenizer.encode_batch(tf.constant(SPM_TEXTS[:3])).to_list() == rows[:3]
        for text, row in zip(SPM_TEXTS, tokenizer.encode_words(SPM_TEXTS).to_list(), strict=True):
            assert list(map(len, row)) == list(map(len, tokenizer.tokenize_words(text)))
        assert tokenizer.encode_batch([]).to_list() == []


def test_a_single_text_is_no_batch(tokenizers):
    model = spm_tokenizers()[0]
    for tokenizer, text, shown in (
        (tokenizers[0][1], "가나", "'가나'"),
        (model, "가나", "'가나'"),
        (model, tf.constant("ab"), "b'ab'"),
    ):
        with refused(f"texts must be in a list. Received: {shown}"):
            tokenizer.encode_batch(text)


# === Worked examples ===


@pytest.fixture(scope="module")
def every_switch(tokenizers):
    return dict(tokenizers)["character-##-\u2581-eojeol-True"]


def spans_of(tokenizer, text):
    ids, spans = tokenizer.encode_with_offsets(text)
    tokens = tokenizer.convert_ids_to_tokens(ids)
    return [(token, text[start:end]) for token, (start, end) in zip(tokens, spans, strict=True)]


def test_offsets_in_what_was_written(tokenizers, every_switch):
    assert spans_of(every_switch, "ＧＯＯＤ가\u200b나 뷁!") == [
        ("good", "ＧＯＯＤ"), ("##가", "가"), ("##나", "\u200b나"[1:]), ("##▁", ""),
        ("ᄇ", "뷁"), ("##ᅰ", "뷁"), ("##ᆰ", "뷁"), ("!▁", "!"),
    ]  # fmt: skip
    assert spans_of(every_switch, "ㅋㅋㅋㅋ😁e\u0301") == [
        ("ㅋ", "ㅋ"), ("##ㅋ", "ㅋ"), ("[UNK]", "😁"), ("##é", "e\u0301"), ("##▁", ""),
    ]  # fmt: skip
    full = dict(tokenizers)["full-True"]
    assert spans_of(full, "  Gó\u200bod 😁x") == [("good", "Gó\u200bod"), ("[UNK]", "😁x")]
    assert spans_of(full, "나") == [("ᄂ", "나"), ("##ᅡ", "나")]


def test_decoding(tokenizers, every_switch):
    def there_and_back(name, text):
        tokenizer = dict(tokenizers)[name]
        return tokenizer.decode(tokenizer.encode(text))

    assert there_and_back("word-##--word-False", "영화가 good!") == "영화가 good !"
    assert there_and_back("word-##--word-False", "영화 😁나 good") == "영화 ⊡ good"
    assert there_and_back("character-##--word-False", "가😁나 good") == "가⊡나 good"
    assert there_and_back("full-True", "각 Good") == "각 good"
    # Without a prefix, only the jamo of a syllable are put together.
    assert there_and_back("character---word-True", "싸😁 싸가 싹") == "싸 ⊡ 싸 가 싹"
    text = "뷁쀍 뷁, 영화!! (가)나"
    expected = text.replace("(", "⁂").replace(")", "⁂")
    assert every_switch.decode(every_switch.encode(text)) == expected
    assert every_switch.decode([]) == ""
