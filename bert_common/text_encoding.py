"""Detects the encoding of text and decodes it; errors name the line and the byte."""

import codecs
import itertools
from collections.abc import Iterable, Iterator

from bert_common.errors import InputError

# The encoding is detected from this many bytes.
SAMPLE_BYTES = 1 << 18

# Python's name of an encoding -> the usual one, for messages.
NAMES = {
    "utf-8": "UTF-8",
    "utf-8-sig": "UTF-8 with BOM",
    "utf-16-le": "UTF-16 (little-endian)",
    "utf-16-be": "UTF-16 (big-endian)",
    "utf-32-le": "UTF-32 (little-endian)",
    "utf-32-be": "UTF-32 (big-endian)",
    "cp949": "cp949 (Korean Windows, EUC-KR)",
}

# The longer marks first: UTF-32's mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

# In UTF-8 with some damage, at most this share of the non-ASCII characters cannot be decoded; in
# Korean in another encoding, nearly all.
_DAMAGED = 0.2

# Text is in cp949 only if at least this share of its characters is usual.
_USUAL = 0.8

# At most this share of the non-ASCII characters of Korean text in cp949 are archaic jamo.
_ARCHAIC = 0.01


def detect_encoding(sample: bytes) -> str:
    """Returns the encoding of a text, a key of `NAMES`, from its first bytes.

    UTF-16 and UTF-32 are known by their mark. Text in none of these encodings is reported as UTF-8,
    so decoding it will fail. The sample, at most `SAMPLE_BYTES`, may end inside a character.
    """
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    text = _decode_sample(sample, "utf-8")
    beyond_ascii = sum(character > "\x7f" for character in text)
    if text.count("\ufffd") <= _DAMAGED * beyond_ascii:
        return "utf-8"
    # Text in cp949 has no zero bytes; UTF-16 has one in every space and line end.
    return "cp949" if b"\0" not in sample and _is_hangul_of_cp949(sample) else "utf-8"


def _decode_sample(sample, encoding):
    return codecs.getincrementaldecoder(encoding)("replace").decode(sample)


def _is_hangul_of_cp949(sample):
    """Returns True if nearly all byte pairs are syllables, jamo or signs of KS X 1001."""
    text = _decode_sample(sample, "cp949")
    pairs = [c.encode("cp949", "replace") for c in text if c > "\x7f"]
    # Archaic jamo have the same bytes as Japanese hiragana in EUC-JP.
    archaic = sum(len(pair) == 2 and pair[0] == 0xA4 and pair[1] > 0xD3 for pair in pairs)
    if archaic > _ARCHAIC * len(pairs):
        return False
    leads = [pair[0] for pair in pairs if len(pair) == 2 and pair[1] >= 0xA1]
    signs = sum(0xA1 <= lead <= 0xA3 for lead in leads)
    letters = sum(lead == 0xA4 or 0xB0 <= lead <= 0xC8 for lead in leads)
    return letters > 0 and letters > signs and letters + signs >= _USUAL * len(pairs)


def decode_blocks(blocks: Iterable[bytes], encoding: str, name: str) -> Iterator[str]:
    """Decodes a file that is read in blocks, without the byte-order mark at its beginning.

    Bytes invalid in `encoding`, a key of `NAMES`, raise an `InputError` with their line and place.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    lines, read, is_first = 1, 0, True
    for block in itertools.chain(filter(None, blocks), [b""]):
        read += len(block)
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = read - len(error.object) + error.start
            lines += error.object[: error.start].decode(encoding, "ignore").count("\n")
            raise InputError(
                f"{name}, line {lines}: the text must be {NAMES[encoding]}, as its beginning is. "
                f"Received: byte 0x{error.object[error.start]:02x} at byte {place + 1:,} of the "
                f"file ({error.reason})"
            ) from None
        lines += text.count("\n")
        yield text.removeprefix("\ufeff") if is_first else text
        is_first = is_first and not text


def decode_text(content: bytes, name: str, encoding: str | None = None) -> str:
    """Decodes a whole file, by default in the encoding that `detect_encoding` returns."""
    encoding = encoding or detect_encoding(content[:SAMPLE_BYTES])
    return "".join(decode_blocks([content], encoding, name))
