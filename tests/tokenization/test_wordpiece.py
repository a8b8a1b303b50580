"""What every tokenizer does beyond the recorded outputs: ids, folders, fingerprints, copies."""

import dataclasses
import os
import pickle
import warnings
from typing import Literal

import pytest

from korean_bert import load_model
from tests.support.models.model_folders import write_folder
from tests.support.paths import TEST_DATA, printed_by
from tests.support.vocabularies import JAMO, SPECIAL, write_lines, write_pieces
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
    "영화", "##가", "##는", "재미", "##있", "##다", "진짜", "ㅋ", "##ㅋ", "ㅠㅠ", "韓", "國", "!",
    ".", ",", "good", "##s", "é", "3", "##8", "_", "##_",
]  # fmt: skip
TEXTS = [
    "", " \t\n", "영화가 재미있다!", "ㅋㅋㅋ 진짜ㅠㅠ", "韓國 영화는 good.", "3,888 é 😀", "!!.,",
]  # fmt: skip
SPECIAL_IDS = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id", "vocab_size")


@pytest.fixture
def vocab_file(tmp_path):
    return write_pieces(tmp_path, PIECES)


@pytest.fixture
def every_tokenizer(vocab_file):
    return [
        FullTokenizer(vocab_file, do_lower_case=False),
        KoreanTokenizer(vocab_file, do_lower_case=True, normalization=None, word_end_marker="_"),
        SentencePieceTokenizer(DATA / "spm_small.model", do_lower_case=None),
    ]


@pytest.fixture
def digits():
    return SentencePieceTokenizer(DATA / "spm_digits.model")


def encode_all(tokenizer):
    return [tokenizer.encode(text) for text in TEXTS]


# === WordPiece ===


def test_full_tokenizer_takes_hangul_apart_and_says_so(vocab_file):
    with pytest.warns(UserWarning, match=r"lower-casing here decomposes Hangul.*KoreanTokenizer"):
        tokenizer = FullTokenizer(vocab_file, do_lower_case=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tokenizer.tokenize("영화 Good") == ["[UNK]", "good"]  # without a second warning
        assert FullTokenizer(vocab_file, do_lower_case=False).tokenize("영화") == ["영화"]
        FullTokenizer(DATA / "vocab.txt", do_lower_case=True)  # holds jamo enough


def test_korean_tokenizer_warns_of_a_jamo_vocabulary(tmp_path):
    with pytest.warns(UserWarning, match="made for decomposed text"):
        KoreanTokenizer(write_pieces(tmp_path, ["\u1100\u1161", "##\u11a8"]))


def test_remembered_words_are_bounded_and_safe(vocab_file, monkeypatch):
    monkeypatch.setattr(wordpiece, "MAX_CACHED_WORDS", 2)
    tokenizer = KoreanTokenizer(vocab_file)
    for text in TEXTS * 2:
        words = tokenizer.tokenize_words(text)
        assert words == KoreanTokenizer(vocab_file).tokenize_words(text)
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
    assert "".join(skipped.tokenize("Café")) == "▁Café"


def test_sentencepiece_words(digits, monkeypatch):
    words = "▁영화 가 | ▁ 재미 3 0 | . | . | ▁( | 영 | ) | ▁ ! | 는"
    pieces = words.replace("| ", "").split(" ")
    monkeypatch.setattr(digits, "_pieces", lambda text: pieces)
    assert " | ".join(map(" ".join, digits.tokenize_words(""))) == words
    assert digits.tokenize("") == pieces


# === Every tokenizer ===


def test_words_tokens_and_ids_agree(every_tokenizer):
    for tokenizer in every_tokenizer:
        for text in TEXTS:
            words = tokenizer.tokenize_words(text)
            assert all(type(word) is list and word for word in words)
            tokens = tokenizer.tokenize(text)
            assert tokens == [piece for word in words for piece in word]
            assert tokenizer.encode(text) == tokenizer.convert_tokens_to_ids(tokens)
            known = [token for token in tokens if token in tokenizer.vocab]
            assert tokenizer.convert_ids_to_tokens(tokenizer.convert_tokens_to_ids(known)) == known


def test_special_ids_follow_the_vocabulary(tmp_path, digits):
    lines = ["[CLS]", "a", "[MASK]", "[SEP]", "[PAD]", "[UNK]"]
    vocab_file = write_lines(tmp_path / "shuffled.txt", lines)
    for tokenizer, expected in (
        (KoreanTokenizer(vocab_file), [4, 5, 0, 3, 2, 6]),
        (FullTokenizer(vocab_file), [4, 5, 0, 3, 2, 6]),
        (digits, [0, 1, 2, 3, 4, 400]),
        (FullTokenizer(write_lines(tmp_path / "bare.txt", ["a", "b"])), [None] * 5 + [2]),
    ):
        assert [getattr(tokenizer, name) for name in SPECIAL_IDS] == expected
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


def test_import_is_cheap():
    program = (
        "import sys, tokenization; "
        "print([m for m in ('tensorflow', 'sentencepiece', 'numpy') if m in sys.modules])"
    )
    assert printed_by("-c", program).strip() == "[]"


# === Copies ===


def test_save_then_load(every_tokenizer, vocab_file, tmp_path):
    for number, tokenizer in enumerate(every_tokenizer):
        directory = tmp_path / "new" / str(number)
        save_tokenizer(tokenizer, directory)
        save_tokenizer(tokenizer, directory)  # over the first
        for copy in (load_tokenizer(directory), pickle.loads(pickle.dumps(tokenizer))):
            assert type(copy) is type(tokenizer) and copy.config() == tokenizer.config()
            assert copy.fingerprint() == tokenizer.fingerprint()
            assert encode_all(copy) == encode_all(tokenizer)
        source, name = (
            (DATA / "spm_small.model", "spiece.model") if number == 2 else (vocab_file, "vocab.txt")
        )
        assert sorted(os.listdir(directory)) == sorted(["tokenizer_config.json", name])
        assert (directory / name).read_bytes() == source.read_bytes()


def test_bytes_of_an_odd_vocabulary_are_kept(tmp_path):
    with pytest.warns(UserWarning, match="read as google-research/bert reads it"):
        tokenizer = FullTokenizer(DATA / "vocab_quirks.txt")
    save_tokenizer(tokenizer, tmp_path)
    assert (tmp_path / "vocab.txt").read_bytes() == (DATA / "vocab_quirks.txt").read_bytes()


def test_every_option_is_in_the_fingerprint(vocab_file, tmp_path):
    write_pieces(tmp_path, [*PIECES, *JAMO])
    others = {str: "@@", int: 3, Literal["NFC", "NFKC", None]: None}
    others[Literal["word", "character", "bytes"]] = "character"
    eojeol = {"word_end_marker": "_", "unknown": "character", "word_end_marker_at": "eojeol"}
    plain = KoreanTokenizer(vocab_file)
    prints = {plain.fingerprint(), FullTokenizer(vocab_file, False).fingerprint()}
    options = dataclasses.fields(KoreanTokenizer.options_type)
    for option in options:
        other = not option.default if option.type is bool else others.get(option.type)
        values = eojeol if option.name == "word_end_marker_at" else {option.name: other}
        prints.add(KoreanTokenizer(vocab_file, **values).fingerprint())
    other_vocab = write_lines(tmp_path / "other.txt", [*SPECIAL, *PIECES, "새"])
    prints.add(KoreanTokenizer(other_vocab).fingerprint())
    assert len(prints) == 3 + len(options) == 17
    assert all(len(print_) == 64 for print_ in prints)
    assert plain.fingerprint() == KoreanTokenizer(vocab_file).fingerprint()


def test_config_names_every_option(every_tokenizer):
    assert every_tokenizer[0].config() == {"kind": "full", "do_lower_case": False}
    for tokenizer in every_tokenizer:
        names = [option.name for option in dataclasses.fields(tokenizer.options_type)]
        if tokenizer.kind == "sentencepiece":
            names.remove("variant")  # a later option, left out at its default: fingerprints stay
        assert list(tokenizer.config()) == ["kind", *names]
        assert KINDS[tokenizer.kind][0] is type(tokenizer)


def test_options_left_out_have_their_defaults(vocab_file, tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"kind": "korean"}')
    assert load_tokenizer(tmp_path).config() == KoreanTokenizer(vocab_file).config()


def test_home_folders(tmp_path, monkeypatch):
    """A path that begins with ~ is in the home folder, for the functions that Python calls too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "model")
    model = load_model("~/model")
    save_tokenizer(model.tokenizer, "~/copy")
    assert load_tokenizer("~/copy").vocab == load_tokenizer(tmp_path / "copy").vocab
    assert not (tmp_path / "~").exists()
