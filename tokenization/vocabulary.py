"""Reads vocabulary files: one token per line, whose id is the line's number from zero."""

import codecs
import os
import re
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_common.folders import read_bytes

if TYPE_CHECKING:  # it imports this module
    from tokenization.base import TokenizerInterface

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

# The number of lines that a warning names: enough to find the cause, in one line.
LINES_NAMED = 5


def is_special(token: str) -> bool:
    """Returns True for tokens in brackets, such as [CLS] or [unused1], or angles, such as <s>.

    Single bytes are written in angles, after ## inside words (##<0xF0>).
    """
    return re.fullmatch(r"\[\w+\]|</?\w+>|##<0x[0-9A-F]{2}>", token) is not None


def special_ids(tokenizer: "TokenizerInterface") -> set[int]:
    """Returns the ids of tokens that stand for no text, such as [UNK], [unused1], <s> or a byte."""
    roles = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id)
    named = {index for token, index in tokenizer.vocab.items() if is_special(token)}
    return named | {index for index in (*roles, tokenizer.mask_id) if index is not None}


def load_vocabulary(path: str | os.PathLike[str]) -> tuple[dict[str, int], bytes]:
    """Loads a vocabulary exactly as google-research/bert does, odd lines included.

    Each line is stripped (of Unicode whitespace too), ids are line numbers, a repeated token gets
    the id of its last line, a blank line is the token "". One warning names the lines that this
    affects. Only "\\n" ends a line.

    Returns:
        The id of each token, and the file's bytes, unchanged.
    """
    content = read_bytes(path)
    lines = _lines(content, path)
    tokens = [line.strip() for line in lines]
    odd = _odd_lines(lines, tokens)
    if odd:
        named = ", ".join(map(str, odd[:LINES_NAMED])) + ", ..." * (len(odd) > LINES_NAMED)
        warnings.warn(
            f"{os.fspath(path)}: read as google-research/bert reads it, but {len(odd)} line(s) are "
            "blank, repeat a token (the last one gives the id), lose whitespace at an end or keep "
            f"a byte-order mark: line {named}",
            stacklevel=3,  # the line that constructs the tokenizer
        )
    return {token: index for index, token in enumerate(tokens)}, content


def load_strict_vocabulary(path: str | os.PathLike[str]) -> tuple[dict[str, int], bytes]:
    """Loads a vocabulary in which every line must be a different token.

    Whitespace around a token is stripped, as is the "\\r" of Windows files. [PAD], [UNK], [CLS],
    [SEP] and [MASK] are required.

    Returns:
        The id of each token, and the file's bytes, unchanged.
    """
    content = read_bytes(path)
    vocab: dict[str, int] = {}
    for index, line in enumerate(_lines(content, path)):
        token = line.strip()
        where = f"{os.fspath(path)} line {index + 1}"
        if not token:
            raise InputError(
                f"every line of a vocabulary must hold a token. Received: {where}: {line!r}"
            )
        if token in vocab:
            raise InputError(
                f"a token must be on one line only. Received: {where}: "
                f"{token!r}, as on line {vocab[token] + 1}"
            )
        vocab[token] = index
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing and content.startswith(codecs.BOM_UTF8):  # it is part of the first token, but unseen
        raise InputError(
            "a vocabulary must not begin with a byte-order mark: save it as UTF-8 without one. "
            f"Received: {os.fspath(path)}"
        )
    if missing:
        raise InputError(
            f"a vocabulary must hold {' '.join(SPECIAL_TOKENS)}. Received: "
            f"{os.fspath(path)} ({len(vocab)} lines) without {' '.join(missing)}"
        )
    return vocab, content


def count_hangul_entries(vocab: Iterable[str]) -> tuple[int, int]:
    """Counts the tokens with composed syllables, and those with conjoining jamo (NFD)."""
    syllables = sum(bool(re.search("[\uac00-\ud7a3]", token)) for token in vocab)
    jamo = sum(bool(re.search("[\u1100-\u11ff]", token)) for token in vocab)
    return syllables, jamo


def _lines(content: bytes, path: str | os.PathLike[str]) -> list[str]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"a vocabulary must be UTF-8. Received: {os.fspath(path)} line {line}: "
            f"byte 0x{content[error.start]:02x}"
        ) from error
    # Not splitlines(), which would also split at U+0085 or U+2028 inside a token.
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _odd_lines(lines, tokens):
    """Returns the numbers of lines that are blank, repeated, padded with whitespace or marked."""
    odd, seen = [], set()
    for number, (line, token) in enumerate(zip(lines, tokens, strict=True), 1):
        is_marked = number == 1 and token.startswith("\ufeff")
        if line != token or not token or token in seen or is_marked:
            odd.append(number)
        seen.add(token)
    return odd
