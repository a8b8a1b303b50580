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


LINES = "".join(f"{token}\n" for token in SPECIAL)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (LINES + "가\n나\n가\n", "line 8: '가', as on line 6"),
        (LINES + "가\n가 \n", "line 7: '가', as on line 6"),
        (LINES.replace("[SEP]", "\n[SEP]"), "line 4: ''"),
        (LINES + "\u3000\n", r"line 6: '\u3000'"),
        ("[UNK]\n[CLS]\n[SEP]\n가\n", "(4 lines) without [PAD] [MASK]"),
        ("\ufeff" + LINES, "must not begin with a byte-order mark"),
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


def test_odd_vocabularies_are_accepted(tmp_path):
    """Of Windows; with a byte-order mark before another token, which models may be trained with."""
    vocab_file = tmp_path / "odd.txt"
    vocab_file.write_bytes(f"\ufeff가\n{LINES}나".replace("\n", "\r\n").encode())
    tokenizer = KoreanTokenizer(vocab_file)
    assert "\ufeff가" in tokenizer.vocab and tokenizer.encode("나") == [6]


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe\n"])
@pytest.mark.parametrize("tokenizer_class", [FullTokenizer, SentencePieceTokenizer])
def test_unreadable_files(tmp_path, tokenizer_class, content):
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with refused("Received: ", path):
        tokenizer_class(path)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"kind": "korean", "lower": True}, "Received: 'lower'"),
        ({"kind": "full", "normalization": "NFC"}, "Received: 'normalization'"),
        ({"kind": "korean", "do_lower_case": "true"}, "do_lower_case must be one of true, false"),
        ({"kind": "bpe"}, "one of full, korean, huggingface, sentencepiece. Received: 'bpe'"),
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
