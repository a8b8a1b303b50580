"""What must hold of every tokenizer and text: graph as Python, offsets, the way there and back.

Shapes: B texts.
"""

import itertools
import unicodedata

import numpy as np


def check_graph(tokenizer, texts):
    """Compares the graph form's words of pieces with Python's; names the text that differs.

    Returns:
        Python's ids of each text.
    """
    found = tokenizer.encode_words(texts)  # [B, (words), (pieces)]
    expected = [
        [tokenizer.convert_tokens_to_ids(word) for word in tokenizer.tokenize_words(text)]
        for text in texts
    ]
    words = list(itertools.chain(*expected))
    ids = [list(itertools.chain(*row)) for row in expected]
    # Arrays: to make lists of a ragged tensor takes a hundred times as long as to compute it.
    pairs = [
        (found.row_lengths(), list(map(len, expected))),
        (found.values.row_lengths(), list(map(len, words))),
        (found.flat_values, list(itertools.chain(*ids))),
    ]
    if not all(np.array_equal(tensor.numpy(), numbers) for tensor, numbers in pairs):
        for text, row, words in zip(texts, found, expected, strict=True):
            assert row.to_list() == words, (tokenizer.config(), text)
        raise AssertionError(f"parts differ that no text has: {tokenizer.config()}")
    return ids


def check_round_trip(tokenizer, text, ids=None):
    """What is decoded is cut into the same pieces; eojeols that are marked come back themselves."""
    ids = tokenizer.encode(text) if ids is None else ids
    decoded = tokenizer.decode(ids)
    if decoded != text:
        assert tokenizer.encode(decoded) == ids, (tokenizer.config(), text, decoded)
    if getattr(tokenizer, "word_end_marker_at", "") == "eojeol" and tokenizer.unk_id not in ids:
        expected = " ".join(tokenizer.normalize(text).split())
        assert decoded == expected, (tokenizer.config(), text)
        assert unicodedata.is_normalized("NFC", decoded), (tokenizer.config(), text)


def check_offsets(tokenizer, text, ids=None):
    """The same ids, with spans inside the text that go forward."""
    ids = tokenizer.encode(text) if ids is None else ids
    found, spans = tokenizer.encode_with_offsets(text)
    assert found == ids, (tokenizer.config(), text)
    assert len(spans) == len(ids)
    if spans:
        starts, ends = map(list, zip(*spans, strict=True))
        right = starts[0] >= 0 and ends[-1] <= len(text) and all(map(int.__le__, starts, ends))
        right = right and starts == sorted(starts) and ends == sorted(ends)
        assert right, (tokenizer.config(), text, spans)
