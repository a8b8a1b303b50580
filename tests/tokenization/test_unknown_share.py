"""Texts that a vocabulary cannot spell are named, with the likely cause; others are not."""

import string
import unicodedata
import warnings

import pytest

from tests.support.paths import ROOT
from tests.support.vocabularies import write_pieces
from tokenization import FullTokenizer, HuggingFaceTokenizer, KoreanTokenizer, load_tokenizer
from tokenization.byte_pieces import byte_vocabulary
from tokenization.unknown_share import (
    FEWEST_PIECES,
    MOST_TEXTS,
    UnknownCounter,
    flatten,
    warn_of_unknown,
)

TEXTS = ["나는 학교에 갔다.", "배우들의 연기가 좋았다."]
SYLLABLES = sorted(set("".join(TEXTS)) - set(" ."))
DECOMPOSED = [unicodedata.normalize("NFD", text) for text in TEXTS]
JAMO = sorted(set("".join(DECOMPOSED)) - set(" ."))


def describe_unknown(tokenizer, texts):
    counter = UnknownCounter(tokenizer)
    counter.add(texts)
    return counter.describe()


def within(pieces):
    """Pieces that begin words and continue them."""
    return [*pieces, *(f"##{piece}" for piece in pieces)]


VOCABULARIES = {
    "sentencepiece": ["▁나는", "▁학교", "에", "▁갔", "다", ".", "▁배우", "들의", "▁연기", "가"],
    "etri": ["나는_", "학교", "에_", "갔", "다_", "배우", "들의_", "연기", "가_", "."],
    "english": [*within(string.ascii_letters), "."],
    "mostly english": [*within(f"w{number}" for number in range(600)), "ᄀ", "가", "."],
    "syllables": [*within(SYLLABLES), "."],
    "jamo": [*within(JAMO), "."],
    "lower": [*within(string.ascii_lowercase), *within(SYLLABLES), "."],
    "other": [*within("물결"), "."],
    "bytes": dict.fromkeys([*byte_vocabulary("##"), *within(string.printable[:94])]),
}
ETRI = {"continuation_prefix": "", "word_end_marker": "_"}

# Vocabulary, tokenizer with its options, texts -> a part of the cause; None: no warning.
CASES = (
    ("sentencepiece", FullTokenizer, {"do_lower_case": False}, TEXTS, "--spm_model_file"),
    ("sentencepiece", HuggingFaceTokenizer, {}, TEXTS, "--spm_model_file"),
    ("etri", KoreanTokenizer, {}, TEXTS, '"word_end_marker": "_"'),
    ("etri", KoreanTokenizer, ETRI, ["나는 학교에 갔다 연기가 갔다"] * 3, None),
    ("english", FullTokenizer, {"do_lower_case": False}, TEXTS, "another language"),
    ("english", HuggingFaceTokenizer, {}, TEXTS, "another language"),
    ("mostly english", FullTokenizer, {}, TEXTS, "another language"),
    ("jamo", KoreanTokenizer, {}, TEXTS, "spells Korean in conjoining jamo"),
    ("jamo", FullTokenizer, {}, TEXTS, None),
    ("syllables", FullTokenizer, {}, TEXTS, "takes Hangul apart"),
    ("syllables", HuggingFaceTokenizer, {}, TEXTS, "takes Hangul apart"),
    ("syllables", FullTokenizer, {"do_lower_case": False}, TEXTS, None),
    ("lower", KoreanTokenizer, {}, ["KOREAN Text", "NEWS"], "no capital letters"),
    ("lower", KoreanTokenizer, {"do_lower_case": True}, ["KOREAN Text", "NEWS"], None),
    ("other", KoreanTokenizer, {}, TEXTS, "text of another kind"),
    ("english", KoreanTokenizer, {}, ["Hello there Korea."] * 9, None),
    ("syllables", FullTokenizer, {"do_lower_case": False}, DECOMPOSED, "macOS"),
    ("syllables", KoreanTokenizer, {}, DECOMPOSED, None),
    ("bytes", KoreanTokenizer, {"unknown": "bytes"}, [*TEXTS, "👍"] * 9, None),
)


def make(folder, name, kind=KoreanTokenizer, options=None):
    path = write_pieces(folder, VOCABULARIES[name])
    with warnings.catch_warnings():  # of some vocabularies the tokenizers themselves warn
        warnings.simplefilter("ignore")
        return kind(path, **(options or {}))


@pytest.mark.parametrize(("name", "kind", "options", "texts", "cause"), CASES)
def test_the_cause_is_named(tmp_path, name, kind, options, texts, cause):
    found = describe_unknown(make(tmp_path, name, kind, options), texts)
    if cause is None:
        assert found is None
    else:
        assert cause in found.split("Likely cause: ")[1]
        assert repr(texts[0].split()[0]) in found and "% of the tokens (" in found
        assert "\n" not in found


def test_few_pieces_say_little_unless_no_word_has_one(tmp_path):
    tokenizer = make(tmp_path, "syllables")
    known = ["나"] * FEWEST_PIECES
    for texts in ([], ["👍", "!"], ["나는 물"], [*known, "물"]):
        assert describe_unknown(tokenizer, texts) is None
    found = describe_unknown(tokenizer, [*known, "물", "물", "물"])
    assert found.startswith("13% of the tokens (3 of 23) are")
    assert "'물결.'" in describe_unknown(make(tmp_path, "english"), ["물결."])


def test_calls_add_up(tmp_path):
    counter = UnknownCounter(make(tmp_path, "syllables"))
    for texts in (["나는 학교에 갔다."], ["배우들의 물결."], ["배우들의 연기가 물결"]):
        assert counter.describe() is None
        counter.add(texts)
    assert counter.describe().startswith("9% of the tokens (2 of 22) are")


def test_masks_and_what_they_touch_do_not_count(tmp_path):
    tokenizer = make(tmp_path, "other")
    assert describe_unknown(tokenizer, ["[MASK]는 [MASK]", "물결[MASK]"]) is None


def test_only_the_first_texts_count(tmp_path):
    counter = UnknownCounter(make(tmp_path, "syllables"))
    counter.add(["나는"] * MOST_TEXTS)
    assert counter.is_done
    counter.add(["물결"] * MOST_TEXTS)
    assert counter.unknown == 0 and counter.describe() is None
    counter = UnknownCounter(make(tmp_path, "syllables"))
    counter.add("나는 " * 1000 for _ in range(100))
    assert counter.is_done and counter.texts < 100


def test_a_warning_names_where(tmp_path):
    texts = [(TEXTS[0], None), [(TEXTS[1],), 3]]  # however they are nested
    with pytest.warns(UserWarning, match="^train: 75% of"):
        assert warn_of_unknown(make(tmp_path, "other"), flatten(texts), "train: ")
    assert not warn_of_unknown(make(tmp_path, "syllables"), TEXTS)


@pytest.mark.filterwarnings("error")
def test_ordinary_korean_suits_the_shipped_vocabulary():
    texts = [*TEXTS, "이 영화 진짜 재미있다 ㅋㅋㅋ 👍", "2024년 서울의 인구는 약 940만 명이다."]
    for path in sorted((ROOT / "sample_corpus").glob("*.txt")):
        texts += [line.strip() for line in path.read_text(encoding="utf-8").splitlines()[:200]]
    tokenizer = load_tokenizer(ROOT / "reference_model")
    assert describe_unknown(tokenizer, texts) is None
    for text in texts:
        assert describe_unknown(tokenizer, [text]) is None, text
