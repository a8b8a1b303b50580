"""Writes the files of small tokenizers."""

import json

from korean_bert.masked_text import encode_masked, with_ends

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
INITIALS = [chr(code) for code in range(0x1100, 0x1113)]
LATER_JAMO = [chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))]
JAMO = [*INITIALS, *("##" + jamo for jamo in INITIALS + LATER_JAMO)]


def write_lines(path, lines):
    """Writes a file of these lines; returns its path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_pieces(folder, pieces):
    """Writes vocab.txt with the special tokens and these; returns its path."""
    return write_lines(folder / "vocab.txt", [*SPECIAL, *pieces])


def write_tokenizer(folder, pieces, kind="korean", **options):
    """Writes vocab.txt and what says which tokenizer it is of; returns the folder, created."""
    folder.mkdir(exist_ok=True)
    write_lines(folder / "vocab.txt", pieces)
    (folder / "tokenizer_config.json").write_text(json.dumps({"kind": kind, **options}))
    return folder


def encode_with_masks(tokenizer, text):
    """Returns the ids of a text with [CLS], [SEP] and a mask for every [MASK]."""
    return with_ends(tokenizer, encode_masked(tokenizer, text).ids)
