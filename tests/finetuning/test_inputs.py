"""Sentences and pairs as rows: reading, cutting, padding as google-research/bert."""

import numpy as np
import pytest

from finetuning.inputs import encode_pair, pad_rows, read_pairs
from tests.support.refusals import refused
from tests.support.vocabularies import write_pieces
from tokenization import FullTokenizer


@pytest.fixture
def tokenizer(tmp_path):
    return FullTokenizer(write_pieces(tmp_path, "abcdefgh"))


def tokens(tokenizer, row):
    return " ".join(tokenizer.convert_ids_to_tokens(row.ids.tolist()))


def test_lines_as_google_reads_them(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(
        "A ||| B\r\n  하나 둘  \n\nA ||| B ||| C\n|||\nA|||B\n ||| B\nx\u2028y\x85z".encode()
    )
    assert read_pairs(path) == [
        ("A", "B"), ("하나 둘", None), ("", None), ("A ||| B", "C"), ("|||", None),
        ("A|||B", None), ("||| B", None), ("x\u2028y\x85z", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "content, words",
    (
        (b"", ("empty",)),
        (b"\xef\xbb\xbf", ("must hold a line",)),
        (b"a\nb\xff\n", ("UTF-8", "line 2", "0xff")),
    ),
)
def test_a_file_that_cannot_be_read(tmp_path, content, words):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with refused(path, *words):
        read_pairs(path)


def test_special_pieces_and_segments(tokenizer):
    row = encode_pair(tokenizer, "a b", "c", 8)
    assert row.segment_ids.tolist() == [0, 0, 0, 0, 1, 1]
    assert row.ids.dtype == row.segment_ids.dtype == np.int32
    assert not encode_pair(tokenizer, "a b", None, 8).segment_ids.any()


@pytest.mark.parametrize(
    "text, second, length, expected",
    (
        ("", None, 8, "[CLS] [SEP]"),
        ("a b", None, 8, "[CLS] a b [SEP]"),
        ("a b", "c", 8, "[CLS] a b [SEP] c [SEP]"),
        ("a b c d", None, 5, "[CLS] a b c [SEP]"),
        ("a b c d", "e", 6, "[CLS] a b [SEP] e [SEP]"),
        ("a", "e f g h", 6, "[CLS] a [SEP] e f [SEP]"),
        ("a b c", "d e f", 8, "[CLS] a b c [SEP] d e [SEP]"),
        ("a", "e", 4, "[CLS] a [SEP]"),  # no place for a piece of B, hence no second [SEP]
        ("a", "e", 3, "[CLS] [SEP]"),
    ),
)
def test_what_is_cut(tokenizer, text, second, length, expected):
    assert tokens(tokenizer, encode_pair(tokenizer, text, second, length)) == expected


def test_padding(tokenizer):
    rows = [encode_pair(tokenizer, "a", "b", 8), encode_pair(tokenizer, "a", None, 8)]
    batch = pad_rows(rows, 6, pad_id=9)
    assert batch["input_ids"].tolist() == [[2, 5, 3, 6, 3, 9], [2, 5, 3, 9, 9, 9]]
    assert batch["input_mask"].tolist() == [[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]]
    assert batch["segment_ids"].tolist() == [[0, 0, 0, 1, 1, 0], [0] * 6]
