"""Keeps a tokenized text in one small file, which training reads without a tokenizer.

The file is an LZMA-compressed archive of NumPy arrays, with about one byte per token.
"""

import lzma
from typing import NamedTuple

import numpy as np

from bert_common.atomic_write import atomic_write
from create_pretraining_data.instances.text import TokenizedText

# The bit that marks a token as the start of a word; the other bits are the token's id.
WORD_START = 1 << 15

# The ids that rows need, in the order in which the file holds them.
SPECIAL = ("cls_id", "sep_id", "mask_id")


class TextFile(NamedTuple):
    """The contents of a file."""

    train: TokenizedText
    held_out: TokenizedText
    special: dict  # the names of SPECIAL -> ids


def write_text(path, content):
    """Writes a `TextFile`."""
    arrays = {"special": np.array([content.special[name] for name in SPECIAL], np.int32)}
    for name in ("train", "held_out"):
        text = getattr(content, name)
        if text.ids.max(initial=0) >= WORD_START:
            raise ValueError(f"ids must be below {WORD_START}. Received: {text.ids.max()}")
        arrays[f"{name}/pieces"] = (text.ids + WORD_START * text.word_starts).astype(np.uint16)
        arrays[f"{name}/sentences"] = np.diff(text.sentences).astype(np.int32)
        arrays[f"{name}/documents"] = np.diff(text.documents).astype(np.int32)
    with atomic_write(path) as file, lzma.open(file, "wb") as packed:
        np.savez(packed, **arrays)


def read_text(path):
    """Reads a `TextFile`."""
    with lzma.open(path) as packed, np.load(packed) as file:
        texts = [_text(file, name) for name in ("train", "held_out")]
        special = dict(zip(SPECIAL, file["special"].tolist(), strict=True))
        return TextFile(*texts, special)


def _text(file, name):
    pieces = file[f"{name}/pieces"]
    bounds = [
        np.concatenate([[0], np.cumsum(file[f"{name}/{of}"])]).tolist()
        for of in ("sentences", "documents")
    ]
    return TokenizedText((pieces % WORD_START).astype(np.int32), pieces >= WORD_START, *bounds)
