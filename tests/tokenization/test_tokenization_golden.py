"""Tokenizers against the recorded output of the tokenizers that they re-implement."""

import json
import unicodedata

import pytest

from tests.support.golden import SAMPLE, WORDPIECE_FILES, read_records
from tests.support.vocabularies import write_lines
from tokenization import FullTokenizer, KoreanTokenizer, SentencePieceTokenizer
from tokenization.characters import is_chinese, is_control, is_punctuation, is_whitespace
from tokenization.sentencepiece import preprocess_text

END_MARKER = {
    "continuation_prefix": "", "word_end_marker": "_", "mark_final_word": False,
    "split_punctuation": False, "normalization": None, "strict_vocabulary": False,
}  # fmt: skip
KOREAN_SWITCHES = {
    "kor_nsmc_vocab": END_MARKER,
    "kor_test_vocab": END_MARKER,
    "kor_albert_repaired": END_MARKER
    | {"continuation_prefix": "##", "mark_final_word": True, "split_punctuation": True},
}


def check(record, tokenizer, tokens):
    """Compares one record; prints the text when they differ."""
    text = record["text"]
    if "basic" in record:
        assert tokenizer.basic_tokens(text) == record["basic"], repr(text)
    assert tokenizer.tokenize(text) == tokens, repr(text)
    if "ids" in record and tokens == record["tokens"]:
        assert tokenizer.encode(text) == record["ids"], repr(text)


# === WordPiece ===


@pytest.mark.parametrize("name", WORDPIECE_FILES)
def test_wordpiece(name):
    tokenizers = {lower: FullTokenizer(SAMPLE / "vocab.txt", lower) for lower in (True, False)}
    for record in read_records(SAMPLE / f"{name}.jsonl"):
        check(record, tokenizers[record["lower"]], record["tokens"])


# === Korean with a word-end marker ===


@pytest.mark.parametrize("name", KOREAN_SWITCHES)
def test_korean(name, tmp_path):
    records = read_records(SAMPLE / f"{name}.jsonl")
    # The pieces that occur are vocabulary enough: what was longest stays longest.
    pieces = sorted({piece for record in records for piece in record["tokens"]})
    path, switches = write_lines(tmp_path / "vocab.txt", pieces), KOREAN_SWITCHES[name]
    tokenizers = {
        lower: KoreanTokenizer(path, do_lower_case=lower, **switches) for lower in (True, False)
    }
    for record in records:
        check(record, tokenizers[record["lower"]], record["tokens"])


# === SentencePiece ===


def without_added_word_start(record):
    """Google's recorded tokens less the "▁" that its bytes comparison fails to remove.

    The tokens at `bytes_token_positions` come in runs that end in ",", one run for each piece
    of `sp_pieces` that ends in digit + comma.
    """
    tokens, expected = iter(record["tokens"]), []
    for piece in record["sp_pieces"]:
        if not (len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit()):
            expected.append(next(tokens))
            continue
        run = [next(tokens)]
        while run[-1] != ",":
            run.append(next(tokens))
        if not piece.startswith("▁"):
            run[0] = run[0].removeprefix("▁")
        expected += filter(None, run)
    assert next(tokens, None) is None
    return expected


@pytest.mark.parametrize(("name", "repaired"), [("spm_small", 0), ("spm_digits", 12)])
def test_sentencepiece(name, repaired):
    path = SAMPLE / f"{name}.model"
    tokenizers = {lower: SentencePieceTokenizer(path, lower) for lower in (True, False)}
    for record in read_records(SAMPLE / f"albert_{name}.jsonl"):
        tokenizer, text = tokenizers[record["lower"]], record["text"]
        if "\u32ff" not in text:  # decomposes since Unicode 12.1, in the model's own NFKC too
            prepared = preprocess_text(text, lower=record["lower"])
            assert prepared == record["preprocessed"], repr(text)
        if record.get("bytes_token_positions"):
            expected = without_added_word_start(record)
            assert "".join(expected) == "".join(record["sp_pieces"])
            repaired -= expected != record["tokens"]
            check(record, tokenizer, expected)
        elif len(set(text)) == 1:
            # One character repeated can be cut in several orders of equal score, among which
            # versions of the library choose differently.
            assert sorted(tokenizer.tokenize(text)) == sorted(record["tokens"]), repr(text)
        else:
            check(record, tokenizer, record["tokens"])
    assert repaired == 0


# === Character classes ===


CLASSES = {
    "whitespace": is_whitespace, "control": is_control, "punctuation": is_punctuation,
    "chinese": is_chinese,
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_character_classes(name):
    classes = json.loads((SAMPLE / "char_classes.json").read_text(encoding="utf-8"))
    ranges = classes["inclusive_ranges"][name]
    google = {chr(code) for first, last in ranges for code in range(first, last + 1)}
    ours = set(filter(CLASSES[name], map(chr, range(0x110000))))
    assert google - ours <= {"\u166d"}  # a symbol since Unicode 12
    # What Python's newer Unicode tables add must be characters that older ones lacked.
    assert all(unicodedata.ucd_3_2_0.category(character) == "Cn" for character in ours - google)
    assert name in ("control", "punctuation") or ours == google
