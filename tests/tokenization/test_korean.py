"""The effects of each switch of KoreanTokenizer, and what each needs."""

import time
import unicodedata

import pytest

from tests.support.refusals import refused
from tests.support.vocabularies import JAMO, SPECIAL, write_lines, write_pieces
from tokenization import FullTokenizer, KoreanTokenizer

PIECES = [
    *"가나다라마바사아자차ㅋA!▁♥", "영화", "##가", "##다", "##화", "##ㅋ", "##A", "!!", "##!",
    "##▁", "##다▁", "##♥", "재미", "##있", "##는", "ㅠㅠ", "good", "GOOD", "é",
]  # fmt: skip
RUNS = "ㅋㅋㅋㅋㅎㅎㅎ ㅠㅠ😀😀😀😀 ^^^ 하하하하 !!!!"
EOJEOL = {"word_end_marker": "▁", "word_end_marker_at": "eojeol", "unknown": "character"}
EVERY = {"fold_width": True, "drop_invisible": True, "shorten_runs": 1}


def made(tmp_path, pieces=PIECES, **switches):
    return KoreanTokenizer(write_pieces(tmp_path, pieces), **switches)


# Switches, a text, its words.
WORDS = [
    ({}, "Ａ！ [MASK] 韓國, 영화!", "Ａ ！ [ MASK ] 韓 國 , 영화 !"),
    ({"split_chinese_characters": False}, "韓國, 영화!", "韓國 , 영화 !"),
    ({"split_punctuation": False}, "韓國, 영화!", "韓 國 , 영화!"),
    ({"fold_width": True}, "Ａ！ ￦ ｱ ㅋ", "A ! ₩ ｱ ㅋ"),
    ({"drop_invisible": True}, "가\u3164나\ufe0f\u115f", "가나"),
    ({}, "가\u3164나 ㅋㅠ", "가\u3164나 ㅋㅠ"),  # NFKC would compose the last
    (EVERY, "ㅋㅠ", "ㅋㅠ"),
    ({}, "가\u200b나\0\ufeff\x7f ᄀ\u200bᅡ 영\ud800화 \udfff \ud83d\ude00가", "가나 가 영화 가"),
    ({"shorten_runs": 2, "split_punctuation": False}, RUNS, "ㅋㅋㅎㅎ ㅠㅠ😀😀 ^^ 하하하하 !!!!"),
    ({"split_punctuation": False}, RUNS, RUNS),
    ({"do_lower_case": True}, "H\u0331 É", "\u1e96 é"),  # composed after lower-casing
]


@pytest.mark.parametrize(("switches", "text", "words"), WORDS)
def test_words(tmp_path, switches, text, words):
    assert " ".join(made(tmp_path, **switches).basic_tokens(text)) == words


FALLBACK = {"jamo_fallback": True}
PLAIN = "영화가 재미있다! ㅋㅋㅋ ㅠㅠ"
# Switches, a text, its pieces with a bar between words.
SPELLED = [
    ({}, PLAIN, "영화 ##가 | 재미 ##있 ##다 | ! | ㅋ ##ㅋ ##ㅋ | ㅠㅠ"),
    ({}, "가😀가 가", "[UNK] | 가"),
    ({}, unicodedata.normalize("NFD", "영화"), "영화"),
    ({"normalization": None}, unicodedata.normalize("NFD", "영화"), "[UNK]"),
    ({}, "GOOD 영화 é", "GOOD | 영화 | é"),
    ({"do_lower_case": True}, "GOOD 영화 É", "good | 영화 | é"),
    ({"do_lower_case": True}, unicodedata.normalize("NFD", "영화 É"), "영화 | é"),
    (FALLBACK, "영화 가뷁", "영화 | 가 ##ᄇ ##ᅰ ##ᆰ"),
    (FALLBACK, "쀼가 나나 가😀", "ᄈ ##ᅲ ##가 | 나 ##ᄂ ##ᅡ | [UNK]"),  # 나 can begin a word only
    ({"unknown": "character"}, "가😀가 😀😁 가나", "가 [UNK] ##가 | [UNK] [UNK] | 가 [UNK]"),
    (EOJEOL, " 가다!!  가▁나 ", "가 ##다 | ! | ! ##▁ | 가 ##▁ | 나 ##▁"),
]


@pytest.mark.parametrize(("switches", "text", "pieces"), SPELLED)
def test_pieces(tmp_path, switches, text, pieces):
    tokenizer = made(tmp_path, PIECES + JAMO * ("jamo_fallback" in switches), **switches)
    assert " | ".join(map(" ".join, tokenizer.tokenize_words(text))) == pieces


def test_word_end_marker(tmp_path):
    vocab_file = write_lines(tmp_path / "marked.txt", [*SPECIAL, "영화", "가", "가_", "._", "."])
    for final, last in ((True, "가_"), (False, "가")):
        tokenizer = KoreanTokenizer(
            vocab_file, continuation_prefix="", word_end_marker="_", mark_final_word=final
        )
        assert tokenizer.tokenize("영화가. 영화가") == ["영화", "가_", "._", "영화", last]
        assert tokenizer.tokenize("") == []


def test_what_is_decoded(tmp_path):
    tokenizer = made(tmp_path, **EOJEOL)
    assert tokenizer.decode(tokenizer.encode(" 가다!!  가▁나 ")) == "가다!! 가 나"
    tokenizer = made(tmp_path, PIECES + JAMO, jamo_fallback=True)
    syllables = map(chr, range(0xAC00, 0xD7A4))
    words = ["".join(part) for part in zip(*[syllables] * 28, strict=True)]
    for text in ("가쀼가각", "쀽", "각가 ᄀ가", "쀍쀍", *words):
        assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


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


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_length_is_no_obstacle(tmp_path, text):
    started = time.perf_counter()
    tokenizer = made(tmp_path, PIECES + JAMO, jamo_fallback=True, shorten_runs=3, **EOJEOL)
    ids = tokenizer.encode(text)
    again, spans = tokenizer.encode_with_offsets(text)
    assert again == ids and spans[-1][1] <= len(text)
    assert tokenizer.encode(tokenizer.decode(ids)) == ids
    assert made(tmp_path).tokenize(text)[:1] in (["[UNK]"], ["가"], ["ㅋ"])
    # Without jamo, what is unknown is searched for them.
    assert len(made(tmp_path, unknown="character").tokenize(text)) > 1000
    assert time.perf_counter() - started < 15  # linear time takes a few


def test_how_long_a_word_may_be(tmp_path):
    tokenizer = made(tmp_path, PIECES + JAMO, unknown="character", jamo_fallback=True)
    assert len(tokenizer.encode("가" * 300)) == 300
    assert len(tokenizer.encode("뷁" * 300)) == 900
    for whole in (made(tmp_path), FullTokenizer(tmp_path / "vocab.txt", False)):
        for _ in range(2):  # found, then remembered
            assert whole.tokenize("ㅋ" * 200) == ["ㅋ"] + ["##ㅋ"] * 199
            assert whole.tokenize("ㅋ" * 201) == ["[UNK]"]
        assert whole.tokenize("영\ud800화 \udfff") == ["영화"]
