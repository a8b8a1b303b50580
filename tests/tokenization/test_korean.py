"""The effects of each switch of KoreanTokenizer, and what each needs."""

import time
import unicodedata

import pytest

from tests.support.refusals import refused
from tests.support.vocabularies import JAMO, write_pieces
from tokenization import FullTokenizer, KoreanTokenizer

SYLLABLES = [*"가나다라마바사아자차", "영화", "##가", "##다", "##화"]
PIECES = [*SYLLABLES, "ㅋ", "##ㅋ", "A", "##A", "!", "!!", "##!", "▁", "##▁", "##다▁", "♥", "##♥"]


def made(tmp_path, pieces=PIECES, **switches):
    return KoreanTokenizer(write_pieces(tmp_path, pieces), **switches)


def test_jamo_fallback(tmp_path):
    tokenizer = made(tmp_path, PIECES + JAMO, jamo_fallback=True)
    assert tokenizer.tokenize("영화") == ["영화"]
    assert tokenizer.tokenize("가뷁") == ["가", "##ᄇ", "##ᅰ", "##ᆰ"]
    assert tokenizer.tokenize("쀼가") == ["ᄈ", "##ᅲ", "##가"]
    assert tokenizer.tokenize("나나") == ["나", "##ᄂ", "##ᅡ"]  # it can begin a word only
    assert tokenizer.tokenize("가😀") == ["[UNK]"]
    for text in ("가쀼가각", "쀽", "각가 ᄀ가", "쀍쀍"):
        assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


def test_every_syllable_comes_back(tmp_path):
    tokenizer = made(tmp_path, PIECES + JAMO, jamo_fallback=True)
    for first in range(0xAC00, 0xD7A4, 28):
        word = "".join(map(chr, range(first, first + 28)))
        assert tokenizer.decode(tokenizer.encode(word)) == word


def test_unknown_character(tmp_path):
    tokenizer = made(tmp_path, unknown="character")
    assert tokenizer.tokenize("가😀가") == ["가", "[UNK]", "##가"]
    assert tokenizer.tokenize("😀😁 가") == ["[UNK]", "[UNK]", "가"]
    assert tokenizer.tokenize("가나") == ["가", "[UNK]"]
    assert made(tmp_path).tokenize("가😀가 가") == ["[UNK]", "가"]


def test_normalisation_switches(tmp_path):
    def words(text, **switches):
        return made(tmp_path, **switches).basic_tokens(text)

    assert words("Ａ！ ￦ ｱ ㅋ", fold_width=True) == ["A", "!", "₩", "ｱ", "ㅋ"]
    assert words("Ａ！") == ["Ａ", "！"]
    assert words("가\u3164나\ufe0f\u115f", drop_invisible=True) == ["가나"]
    assert words("가\u3164나") == ["가\u3164나"]
    assert words("가\u200b나\u0000\ufeff\x7f") == ["가나"]  # always
    assert words("ᄀ\u200bᅡ") == ["가"]
    runs = "ㅋㅋㅋㅋㅎㅎㅎ ㅠㅠ😀😀😀😀 ^^^ 하하하하 !!!!"
    assert words(runs, shorten_runs=2, split_punctuation=False) == [
        "ㅋㅋㅎㅎ", "ㅠㅠ😀😀", "^^", "하하하하", "!!!!",
    ]  # fmt: skip
    assert words(runs, split_punctuation=False) == runs.split()
    assert words("ㅋㅠ", fold_width=True, drop_invisible=True, shorten_runs=1) == ["ㅋㅠ"]
    assert words("H\u0331", do_lower_case=True) == ["\u1e96"]  # composed after lower-casing


def test_marker_at_eojeol_ends(tmp_path):
    tokenizer = made(
        tmp_path, word_end_marker="▁", word_end_marker_at="eojeol", unknown="character"
    )
    assert tokenizer.tokenize_words(" 가다!!  가▁나 ") == [
        ["가", "##다"], ["!"], ["!", "##▁"], ["가", "##▁"], ["나", "##▁"],
    ]  # fmt: skip
    assert tokenizer.decode(tokenizer.encode(" 가다!!  가▁나 ")) == "가다!! 가 나"
    assert tokenizer.encode("가") != tokenizer.encode("가 가")[:1]


def test_lone_surrogates_are_dropped(tmp_path):
    for tokenizer in (made(tmp_path), FullTokenizer(tmp_path / "vocab.txt", False)):
        assert tokenizer.tokenize("영\ud800화 \udfff") == ["영화"]
        assert tokenizer.basic_tokens("\ud83d\ude00가") == ["가"]


# === What does not go together ===


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"word_end_marker_at": "eojeol"}, "requires a word_end_marker"),
        ({"word_end_marker_at": "eojeol", "word_end_marker": "▁"}, 'and unknown "character"'),
        ({"word_end_marker": "<>", "unknown": "character"}, "one punctuation mark or symbol"),
        ({"word_end_marker": "가", "unknown": "character"}, "one punctuation mark or symbol"),
        ({"word_end_marker": "≠", "unknown": "character"}, "not decompose"),
        ({"word_end_marker": "♣", "unknown": "character"}, "Received: no '##♣'"),
        ({"jamo_fallback": True}, "86 missing, such as"),
        ({"jamo_fallback": True, "normalization": None}, 'normalization "NFC"'),
        ({"shorten_runs": -1}, "shorten_runs must be a whole number from 0 to 2147483647. Rec"),
        ({"shorten_runs": 2**32}, "must be a whole number from 0 to 2147483647"),
        ({"shorten_runs": int("9" * 4000)}, "must be a whole number from 0 to 2147483647"),
        ({"word_end_marker": "\ud800"}, "word_end_marker must be a string without lone surrogates"),
        ({"continuation_prefix": "\ufffd"}, "continuation_prefix must be a string without"),
        ({"shorten_runs": True}, "must be a whole number"),
        ({"unknown": "byte"}, "unknown must be one of"),
        ({"normalization": "NFD"}, 'normalization must be one of "NFC", "NFKC", null'),
        ({"do_lower_case": 1}, "KoreanTokenizer: do_lower_case must be one of true, false"),
        ({"word_end_marker": None}, "word_end_marker must be a string"),
    ],
)
def test_refused(tmp_path, switches, message):
    with refused(message, "Received: "):
        made(tmp_path, **switches)


# === Length ===

LONG = {
    "word": "가" * 350_000,  # a megabyte
    "unknown": "😀" * 100_000,
    "jamo": "뷁" * 30_000,
    "marks": "e" + "\u0301" * 30_000,
    "spaces": "가 " * 30_000,
    "runs": "ㅋ" * 30_000,
}


@pytest.mark.parametrize("name", LONG)
def test_length_is_no_obstacle(tmp_path, name):
    text, started = LONG[name], time.perf_counter()
    tokenizer = made(
        tmp_path, PIECES + JAMO, unknown="character", jamo_fallback=True, shorten_runs=3,
        word_end_marker="▁", word_end_marker_at="eojeol",
    )  # fmt: skip
    ids = tokenizer.encode(text)
    again, spans = tokenizer.encode_with_offsets(text)
    assert again == ids and spans[-1][1] <= len(text)
    assert tokenizer.encode(tokenizer.decode(ids)) == ids
    assert made(tmp_path).tokenize(text)[:1] in (["[UNK]"], ["가"], ["ㅋ"])
    # Without jamo, what is unknown is searched for them.
    assert len(made(tmp_path, unknown="character").tokenize(text)) > 1000
    assert time.perf_counter() - started < 15  # linear time takes a few


def test_300_syllables(tmp_path):
    tokenizer = made(tmp_path, PIECES + JAMO, unknown="character", jamo_fallback=True)
    assert len(tokenizer.encode("가" * 300)) == 300
    assert len(tokenizer.encode("뷁" * 300)) == 900
    assert made(tmp_path).tokenize("가" * 300) == ["[UNK]"]
