"""The tokenizers beyond the recorded outputs: Korean kept whole, options, folders."""

import dataclasses
import os
import pickle
import unicodedata
import warnings
from typing import Literal

import pytest

from tests.support.paths import TEST_DATA, printed_by
from tests.support.vocabularies import JAMO, SPECIAL, write_lines
from tokenization import (
    FullTokenizer,
    KoreanTokenizer,
    SentencePieceTokenizer,
    load_tokenizer,
    save_tokenizer,
    wordpiece,
)
from tokenization.loading import KINDS

DATA = TEST_DATA / "tokenization"
PIECES = [
    "영화", "##가", "##는", "재미", "##있", "##다", "진짜", "ㅋ", "##ㅋ", "ㅠㅠ", "큐", "韓", "國",
    "!", ".", ",", "good", "##s", "GOOD", "é", "3", "##8",
]  # fmt: skip
TEXTS = [
    "", " \t\n", "영화가 재미있다!", "ㅋㅋㅋ 진짜ㅠㅠ", "韓國 영화는 good.", "3,888 é 😀", "!!.,",
]  # fmt: skip


@pytest.fixture
def vocab_file(tmp_path):
    return write_lines(tmp_path / "source.txt", SPECIAL + PIECES)


@pytest.fixture
def digits():
    return SentencePieceTokenizer(DATA / "spm_digits.model")


# === Korean ===


def test_korean_is_kept_whole(vocab_file):
    tokenizer = KoreanTokenizer(vocab_file)
    assert tokenizer.tokenize_words("영화가 재미있다!") == [
        ["영화", "##가"], ["재미", "##있", "##다"], ["!"],
    ]  # fmt: skip
    assert tokenizer.tokenize("ㅋㅋㅋ ㅠㅠ") == ["ㅋ", "##ㅋ", "##ㅋ", "ㅠㅠ"]


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_decomposed_input_equals_composed(vocab_file, do_lower_case):
    tokenizer = KoreanTokenizer(vocab_file, do_lower_case=do_lower_case)
    for text in TEXTS:
        decomposed = unicodedata.normalize("NFD", text)
        assert tokenizer.encode(decomposed) == tokenizer.encode(text)
    as_it_is = KoreanTokenizer(vocab_file, normalization=None)
    assert as_it_is.tokenize(unicodedata.normalize("NFD", "영화")) == ["[UNK]"]


def test_chat_jamo_do_not_compose(vocab_file):
    assert unicodedata.normalize("NFKC", "ㅋㅠ") == "큐"  # the trap
    assert KoreanTokenizer(vocab_file).basic_tokens("ㅋㅠ") == ["ㅋㅠ"]


def test_lower_casing_changes_nothing_else(vocab_file):
    cased = KoreanTokenizer(vocab_file)
    lowered = KoreanTokenizer(vocab_file, do_lower_case=True)
    assert cased.tokenize("GOOD 영화 é") == ["GOOD", "영화", "é"]
    assert lowered.tokenize("GOOD 영화 É") == ["good", "영화", "é"]  # the accent stays
    for text in TEXTS:
        assert cased.tokenize(text) == lowered.tokenize(text)


def test_korean_switches(vocab_file):
    text = "韓國, 영화!"
    for switches, words in (
        ({}, ["韓", "國", ",", "영화", "!"]),
        ({"split_chinese_characters": False}, ["韓國", ",", "영화", "!"]),
        ({"split_punctuation": False}, ["韓", "國", ",", "영화!"]),
    ):
        assert KoreanTokenizer(vocab_file, **switches).basic_tokens(text) == words


def test_word_end_marker(tmp_path):
    vocab_file = write_lines(tmp_path / "marked.txt", [*SPECIAL, "영화", "가", "가_", "._", "."])
    switches = {"continuation_prefix": "", "word_end_marker": "_"}
    tokenizer = KoreanTokenizer(vocab_file, **switches)
    assert tokenizer.tokenize_words("영화가 영화가.") == [["영화", "가_"], ["영화", "가_"], ["._"]]
    tokenizer = KoreanTokenizer(vocab_file, mark_final_word=False, **switches)
    assert tokenizer.tokenize_words("영화가 영화가") == [["영화", "가_"], ["영화", "가"]]
    assert tokenizer.tokenize("") == []


# === Google's rules ===


def test_full_tokenizer_takes_hangul_apart_and_says_so(vocab_file):
    with pytest.warns(UserWarning, match=r"lower-casing here decomposes Hangul.*KoreanTokenizer"):
        tokenizer = FullTokenizer(vocab_file, do_lower_case=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tokenizer.tokenize("영화 Good") == ["[UNK]", "good"]  # without a second warning
        assert FullTokenizer(vocab_file, do_lower_case=False).tokenize("영화") == ["영화"]
        FullTokenizer(DATA / "vocab.txt", do_lower_case=True)  # holds jamo enough


def test_korean_tokenizer_warns_of_a_jamo_vocabulary(tmp_path):
    vocab_file = write_lines(tmp_path / "jamo.txt", [*SPECIAL, "\u1100\u1161", "##\u11a8"])
    with pytest.warns(UserWarning, match="made for decomposed text"):
        KoreanTokenizer(vocab_file)


def test_special_tokens_in_text_are_text(vocab_file):
    assert KoreanTokenizer(vocab_file).basic_tokens("[MASK]") == ["[", "MASK", "]"]


def test_a_word_of_200_characters_is_the_longest(vocab_file):
    tokenizer = KoreanTokenizer(vocab_file)
    for _ in range(2):  # found, then remembered
        assert tokenizer.tokenize("ㅋ" * 200) == ["ㅋ"] + ["##ㅋ"] * 199
        assert tokenizer.tokenize("ㅋ" * 201) == ["[UNK]"]


def test_remembered_words_are_bounded_and_safe(vocab_file, monkeypatch):
    monkeypatch.setattr(wordpiece, "MAX_CACHED_WORDS", 2)
    tokenizer = KoreanTokenizer(vocab_file)
    for text in TEXTS * 2:
        expected = KoreanTokenizer(vocab_file).tokenize_words(text)
        words = tokenizer.tokenize_words(text)
        assert words == expected
        for word in words:
            word.clear()  # a caller may change what it was given
        assert len(tokenizer.wordpiece._cache) <= 2


# === SentencePiece ===


def test_numbers_with_commas_are_text(digits):
    pieces = digits.tokenize("1999, 2,345,678")
    assert all(type(piece) is str for piece in pieces)
    assert "".join(pieces) == "▁1999,▁2,345,678"
    assert pieces[:3] == ["▁199", "9", ","]  # Google: "▁199", b"\xe2\x96\x81", b"9", b","
    assert digits.tokenize("₩1,000") == ["▁", "₩", "1", ",", "0", "0", "0"]


def test_preprocessing_can_be_skipped():
    lowered, cased, skipped = (
        SentencePieceTokenizer(DATA / "spm_small.model", lower) for lower in (True, False, None)
    )
    assert lowered.tokenize("Café") == lowered.tokenize("cafe")
    assert cased.tokenize("Café") == cased.tokenize("Cafe") != lowered.tokenize("Café")
    assert skipped.tokenize("Café") != skipped.tokenize("Cafe")
    assert "".join(skipped.tokenize("Café")) == "▁Café"


def test_sentencepiece_words(digits, monkeypatch):
    pieces = ["▁영화", "가", "▁", "재미", "3", "0", ".", ".", "▁(", "영", ")", "▁", "!", "는"]
    monkeypatch.setattr(digits, "_pieces", lambda text: pieces)
    assert digits.tokenize_words("") == [
        ["▁영화", "가"], ["▁", "재미", "3", "0"], ["."], ["."],
        ["▁("], ["영"], [")"], ["▁", "!"], ["는"],
    ]  # fmt: skip
    assert digits.tokenize("") == pieces


# === Every tokenizer ===


def every_tokenizer(vocab_file):
    return [
        FullTokenizer(vocab_file, do_lower_case=False),
        KoreanTokenizer(vocab_file, do_lower_case=True, normalization=None, word_end_marker="_"),
        SentencePieceTokenizer(DATA / "spm_small.model", do_lower_case=None),
    ]


def test_words_tokens_and_ids_agree(vocab_file):
    for tokenizer in every_tokenizer(vocab_file):
        for text in TEXTS:
            words = tokenizer.tokenize_words(text)
            assert all(type(word) is list and word for word in words)
            tokens = tokenizer.tokenize(text)
            assert tokens == [piece for word in words for piece in word]
            ids = tokenizer.encode(text)
            assert ids == tokenizer.convert_tokens_to_ids(tokens)
            known = [token for token in tokens if token in tokenizer.vocab]
            assert tokenizer.convert_ids_to_tokens(tokenizer.convert_tokens_to_ids(known)) == known


def test_special_ids_follow_the_vocabulary(tmp_path, digits):
    lines = ["[CLS]", "a", "[MASK]", "[SEP]", "[PAD]", "[UNK]"]
    vocab_file = write_lines(tmp_path / "shuffled.txt", lines)
    for tokenizer in (KoreanTokenizer(vocab_file), FullTokenizer(vocab_file)):
        assert (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id) == (4, 5, 0)
        assert (tokenizer.sep_id, tokenizer.mask_id, tokenizer.vocab_size) == (3, 2, 6)
    assert (digits.pad_id, digits.unk_id, digits.cls_id) == (0, 1, 2)
    assert (digits.sep_id, digits.mask_id, digits.vocab_size) == (3, 4, 400)
    bare = FullTokenizer(write_lines(tmp_path / "bare.txt", ["a", "b"]))
    assert bare.pad_id is None and bare.mask_id is None
    with pytest.warns(UserWarning, match="repeat"):
        gap = FullTokenizer(write_lines(tmp_path / "gap.txt", ["a", "b", "a"]))
    assert gap.vocab_size == 3 and gap.encode("a") == [2]
    with pytest.raises(KeyError, match="id must belong to a token, below 3. Received: 0"):
        gap.convert_ids_to_tokens([0])


def test_unknown_tokens(vocab_file, digits):
    for tokenizer in (FullTokenizer(vocab_file, False), KoreanTokenizer(vocab_file)):
        with pytest.raises(KeyError, match="token must be in the vocabulary .*Received: '없음'"):
            tokenizer.convert_tokens_to_ids(["영화", "없음"])
    lenient = KoreanTokenizer(vocab_file, strict_vocabulary=False)
    assert lenient.convert_tokens_to_ids(["영화", "없음"]) == [5, 1]
    assert digits.convert_tokens_to_ids(["없음"]) == [1]


def test_tokenizers_can_be_sent_to_other_processes(vocab_file):
    for tokenizer in every_tokenizer(vocab_file):
        copy = pickle.loads(pickle.dumps(tokenizer))
        assert [copy.encode(text) for text in TEXTS] == [tokenizer.encode(text) for text in TEXTS]


def test_import_is_cheap():
    program = (
        "import sys, tokenization; "
        "print([m for m in ('tensorflow', 'sentencepiece', 'numpy') if m in sys.modules])"
    )
    assert printed_by("-c", program).strip() == "[]"


# === Directories ===


def test_save_then_load(vocab_file, tmp_path):
    for number, tokenizer in enumerate(every_tokenizer(vocab_file)):
        directory = tmp_path / "new" / str(number)
        save_tokenizer(tokenizer, directory)
        save_tokenizer(tokenizer, directory)  # over the first
        loaded = load_tokenizer(directory)
        assert type(loaded) is type(tokenizer)
        assert loaded.config() == tokenizer.config()
        assert loaded.fingerprint() == tokenizer.fingerprint()
        assert [loaded.encode(text) for text in TEXTS] == [tokenizer.encode(t) for t in TEXTS]
        name = "spiece.model" if number == 2 else "vocab.txt"
        assert sorted(os.listdir(directory)) == sorted(["tokenizer_config.json", name])
        source = DATA / "spm_small.model" if number == 2 else vocab_file
        assert (directory / name).read_bytes() == source.read_bytes()


def test_bytes_of_an_odd_vocabulary_are_kept(tmp_path):
    with pytest.warns(UserWarning, match="read as google-research/bert reads it"):
        tokenizer = FullTokenizer(DATA / "vocab_quirks.txt")
    save_tokenizer(tokenizer, tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == (DATA / "vocab_quirks.txt").read_bytes()


def test_every_option_is_in_the_fingerprint(vocab_file, tmp_path):
    others = {str: "@@", int: 3, Literal["NFC", "NFKC", None]: None}
    others[Literal["word", "character", "bytes"]] = "character"
    # Two that need others: these come with them.
    needs = {
        "jamo_fallback": {},
        "word_end_marker_at": {"word_end_marker": "_", "unknown": "character"},
    }
    write_lines(vocab_file, [*SPECIAL, *PIECES, *JAMO, "##_"])
    plain = KoreanTokenizer(vocab_file)
    prints = {plain.fingerprint(), FullTokenizer(vocab_file, False).fingerprint()}
    options = dataclasses.fields(KoreanTokenizer.options_type)
    for option in options:
        if option.name == "word_end_marker_at":
            other = "eojeol"
        else:
            other = not option.default if option.type is bool else others[option.type]
        values = needs.get(option.name, {}) | {option.name: other}
        prints.add(KoreanTokenizer(vocab_file, **values).fingerprint())
    other_vocab = write_lines(tmp_path / "other.txt", [*SPECIAL, *PIECES, "새"])
    prints.add(KoreanTokenizer(other_vocab).fingerprint())
    assert len(prints) == 3 + len(options) == 17
    assert all(len(print_) == 64 for print_ in prints)
    assert plain.fingerprint() == KoreanTokenizer(vocab_file).fingerprint()


def test_config_names_every_option(vocab_file):
    assert every_tokenizer(vocab_file)[0].config() == {"kind": "full", "do_lower_case": False}
    for tokenizer in every_tokenizer(vocab_file):
        names = [option.name for option in dataclasses.fields(tokenizer.options_type)]
        if tokenizer.kind == "sentencepiece":
            names.remove("variant")  # a later option, left out at its default: fingerprints stay
        assert list(tokenizer.config()) == ["kind", *names]
        assert KINDS[tokenizer.kind][0] is type(tokenizer)


def test_options_left_out_have_their_defaults(vocab_file, tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"kind": "korean"}')
    vocab_file.rename(tmp_path / "vocab.txt")
    assert load_tokenizer(tmp_path).config() == KoreanTokenizer(tmp_path / "vocab.txt").config()
