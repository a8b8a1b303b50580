"""Tokenizers against the recorded output of the tokenizers that they re-implement."""

import hashlib
import json
import unicodedata

import pytest

from tests.support.golden import SAMPLE, WORDPIECE_FILES, read_records
from tests.support.paths import SHARED
from tests.support.vocabularies import write_lines
from tokenization import FullTokenizer, KoreanTokenizer, SentencePieceTokenizer
from tokenization.characters import is_chinese, is_control, is_punctuation, is_whitespace
from tokenization.sentencepiece import preprocess_text
from tokenization.vocabulary import load_vocabulary

# The complete records, which are too large to ship; absent on most machines.
FULL = SHARED / "golden" / "tokenization"
needs_full_records = pytest.mark.skipif(
    not FULL.is_dir(), reason="the complete golden records are not on this machine"
)

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
SPM_MODELS = {"albert_spm_small": "spm_small.model", "albert_spm_digits": "spm_digits.model"}


def check(record, tokenizer, tokens):
    """Compares one record; prints the text when they differ."""
    text = record["text"]
    if "basic" in record:
        assert tokenizer.basic_tokens(text) == record["basic"], repr(text)
    assert tokenizer.tokenize(text) == tokens, repr(text)
    if "ids" in record and tokens == record["tokens"]:
        assert tokenizer.encode(text) == record["ids"], repr(text)


# === WordPiece ===


def check_wordpiece(folder, name):
    tokenizers = {lower: FullTokenizer(folder / "vocab.txt", lower) for lower in (True, False)}
    for record in read_records(folder / f"{name}.jsonl"):
        check(record, tokenizers[record["lower"]], record["tokens"])


@pytest.mark.parametrize("name", WORDPIECE_FILES)
def test_wordpiece_sample(name):
    check_wordpiece(SAMPLE, name)


@needs_full_records
@pytest.mark.parametrize("name", WORDPIECE_FILES)
def test_wordpiece_complete(name):
    check_wordpiece(FULL, name)


def test_vocabulary_quirks():
    expected = json.loads((SAMPLE / "vocab_quirks_expected.json").read_text(encoding="utf-8"))
    with pytest.warns(UserWarning) as warned:
        vocab, _ = load_vocabulary(SAMPLE / "vocab_quirks.txt")
    assert list(vocab.items()) == [tuple(pair) for pair in expected["google_bert"]]
    message = str(warned[0].message)
    # Blank are 9 and 20, repeated 8 and 19, padded 10 to 13 and 18.
    assert "9 line(s) are blank, repeat a token" in message
    assert message.endswith(": line 8, 9, 10, 11, 12, ...")


# === Korean with a word-end marker ===


def check_korean(name, records, vocab_file):
    tokenizers = {
        lower: KoreanTokenizer(vocab_file, do_lower_case=lower, **KOREAN_SWITCHES[name])
        for lower in (True, False)
    }
    for record in records:
        check(record, tokenizers[record["lower"]], record["tokens"])


@pytest.mark.parametrize("name", KOREAN_SWITCHES)
def test_korean_sample(name, tmp_path):
    records = read_records(SAMPLE / f"{name}.jsonl")
    # The pieces that occur are vocabulary enough: what was longest stays longest.
    pieces = sorted({piece for record in records for piece in record["tokens"]})
    check_korean(name, records, write_lines(tmp_path / "vocab.txt", pieces))


@needs_full_records
@pytest.mark.filterwarnings("ignore:.*read as google-research/bert reads it")
@pytest.mark.parametrize("name", ["kor_nsmc_vocab", "kor_test_vocab"])
def test_korean_complete(name):
    records = read_records(FULL / f"{name}.jsonl")
    corpus = name.split("_")[1]
    vocab_file = SHARED / "data" / "vocabs" / f"end_marker_{corpus}.txt"
    check_korean(name, records, vocab_file)
    info = json.loads((FULL / f"{name}_info.json").read_text(encoding="utf-8"))
    tokenizer = KoreanTokenizer(vocab_file, **KOREAN_SWITCHES[name])
    assert tokenizer.vocab_size == info["max_index"] + 1
    special_ids = ("pad_id", "unk_id", "cls_id", "sep_id", "mask_id")
    assert [getattr(tokenizer, special) for special in special_ids] == list(
        info["special"].values()
    )


@needs_full_records
def test_korean_albert_complete(tmp_path):
    records = read_records(FULL / "kor_albert_repaired.jsonl")
    # Its vocabulary is the other one with the special tokens moved to the front.
    special = ["[CLS]", "[SEP]", "[MASK]", "[UNK]"]
    source = SHARED / "data" / "vocabs" / "end_marker_nsmc.txt"
    lines = source.read_text(encoding="utf-8").splitlines()
    content = "\n".join(special + [line for line in lines if line not in special]).encode()
    assert hashlib.sha256(content).hexdigest().startswith("aa09aff1")
    vocab_file = tmp_path / "vocab.txt"
    vocab_file.write_bytes(content)
    check_korean("kor_albert_repaired", records, vocab_file)


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
        expected += [part for part in run if part]
    assert next(tokens, None) is None
    return expected


def check_sentencepiece(folder, name):
    tokenizers = {
        lower: SentencePieceTokenizer(folder / SPM_MODELS[name], lower) for lower in (True, False)
    }
    repaired = 0
    for record in read_records(folder / f"{name}.jsonl"):
        tokenizer, text = tokenizers[record["lower"]], record["text"]
        if "\u32ff" not in text:  # decomposes since Unicode 12.1, in the model's own NFKC too
            prepared = preprocess_text(text, lower=record["lower"])
            assert prepared == record["preprocessed"], repr(text)
        if record.get("bytes_token_positions"):
            expected = without_added_word_start(record)
            assert "".join(expected) == "".join(record["sp_pieces"])
            repaired += expected != record["tokens"]
            check(record, tokenizer, expected)
        elif len(set(text)) == 1:
            # One character repeated can be cut in several orders of equal score, among which
            # versions of the library choose differently.
            assert sorted(tokenizer.tokenize(text)) == sorted(record["tokens"]), repr(text)
        else:
            check(record, tokenizer, record["tokens"])
    return repaired


@pytest.mark.parametrize(("name", "repaired"), [("albert_spm_small", 0), ("albert_spm_digits", 12)])
def test_sentencepiece_sample(name, repaired):
    assert check_sentencepiece(SAMPLE, name) == repaired


@needs_full_records
@pytest.mark.parametrize("name", SPM_MODELS)
def test_sentencepiece_complete(name):
    check_sentencepiece(FULL, name)


# === Character classes ===


@pytest.mark.parametrize(
    ("name", "test"),
    [
        ("whitespace", is_whitespace),
        ("control", is_control),
        ("punctuation", is_punctuation),
        ("chinese", is_chinese),
    ],
)
def test_character_classes(name, test):
    classes = json.loads((SAMPLE / "char_classes.json").read_text(encoding="utf-8"))
    ranges = classes["inclusive_ranges"][name]
    google = {chr(code) for first, last in ranges for code in range(first, last + 1)}
    ours = {chr(code) for code in range(0x110000) if test(chr(code))}
    assert google - ours <= {"\u166d"}  # a symbol since Unicode 12
    # What Python's newer Unicode tables add must be characters that older ones lacked.
    assert all(unicodedata.ucd_3_2_0.category(character) == "Cn" for character in ours - google)
    assert name in ("control", "punctuation") or ours == google
