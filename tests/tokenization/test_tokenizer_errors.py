"""Vocabularies and tokenizer folders that cannot be read: one line that names the file."""

import json

import pytest

from tests.support.refusals import refused
from tests.support.vocabularies import SPECIAL, write_pieces
from tokenization import (
    FullTokenizer,
    InputError,
    KoreanTokenizer,
    SentencePieceTokenizer,
    load_tokenizer,
)
from tokenization.loading import KINDS

# === Vocabulary errors ===


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n가\n나\n가\n", "line 8: '가', as on line 6"),
        ("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n가\n가 \n", "line 7: '가', as on line 6"),
        ("[PAD]\n[UNK]\n[CLS]\n\n[SEP]\n[MASK]\n", "line 4: ''"),
        ("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n\u3000\n", r"line 6: '\u3000'"),
        ("[UNK]\n[CLS]\n[SEP]\n가\n", "(4 lines) without [PAD] [MASK]"),
        ("\ufeff[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "must not begin with a byte-order mark"),
        (b"[PAD]\n[UNK]\n\xb0\xa1\n", "line 3: byte 0xb0"),
        ("", "must not be empty"),
        (None, "must exist"),
    ],
)
def test_strict_vocabulary(tmp_path, content, message):
    vocab_file = tmp_path / "broken.txt"
    if content is not None:
        vocab_file.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    with refused(message, vocab_file, "Received: "):
        KoreanTokenizer(vocab_file)


def test_windows_vocabulary_is_accepted(tmp_path):
    vocab_file = tmp_path / "windows.txt"
    vocab_file.write_bytes("\r\n".join([*SPECIAL, "가"]).encode("utf-8"))
    assert KoreanTokenizer(vocab_file).encode("가") == [5]


def test_a_byte_order_mark_before_another_token_is_a_part_of_it(tmp_path):
    """Models may have been trained so."""
    vocab_file = tmp_path / "marked.txt"
    vocab_file.write_bytes("\ufeff가\n".encode() + "\n".join(SPECIAL).encode())
    assert "\ufeff가" in KoreanTokenizer(vocab_file).vocab


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\n"])
def test_unreadable_files(tmp_path, content):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    for tokenizer_class in (FullTokenizer, SentencePieceTokenizer):
        with pytest.raises(InputError, match="Received: .*file"):
            tokenizer_class(path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kind": "korean", "lower": True}, "Received: 'lower'"),
        ({"kind": "full", "normalization": "NFC"}, "Received: 'normalization'"),
        ({"kind": "korean", "do_lower_case": "true"}, "do_lower_case must be one of true, false"),
        (
            {"kind": "bpe"},
            "kind must be one of full, korean, huggingface, sentencepiece. Received: 'bpe'",
        ),
        ({"kind": ["full"]}, "kind must be one of"),
        ({}, "Received: None"),
        ([], "must hold a JSON object"),
        ('{"kind": ', "must hold JSON"),
        ('{"kind": "korean", "shorten_runs": %s}' % ("9" * 5000), "must hold JSON"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        (None, "must exist"),
    ],
)
def test_broken_directories(tmp_path, config, message):
    write_pieces(tmp_path, [])
    path = tmp_path / "tokenizer_config.json"
    if config is not None:
        path.write_text(config if isinstance(config, str) else json.dumps(config))
    with refused(message, path, "Received: "):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_vocabulary(tmp_path, kind):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"kind": kind}))
    with pytest.raises(InputError, match=KINDS[kind][1]):
        load_tokenizer(tmp_path)
