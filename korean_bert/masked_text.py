"""Encodes texts in which [MASK] stands for what a model has to guess."""

import itertools
from typing import NamedTuple

from tokenization.characters import is_punctuation

MASK = "[MASK]"


class MaskedPlace(NamedTuple):
    """Where a [MASK] is."""

    position: int  # among the ids
    continues: bool  # whether it directly follows a part of its word, as a particle does
    followed: bool  # whether a part of its word directly follows it


def encode_with_masks(tokenizer, text):
    """Encodes a text with [CLS] and [SEP], and with the mask's id for every [MASK].

    Text that follows a [MASK] without a space continues its word: in "[MASK]는 갔다" the mask is a
    noun, and "는" a particle.
    """
    first, *parts = text.split(MASK)
    ids = [tokenizer.cls_id, *tokenizer.encode(first)]
    for part in parts:
        ids.append(tokenizer.mask_id)
        ids += tokenizer.convert_tokens_to_ids(tokenize_after_mask(tokenizer, part))
    return [*ids, tokenizer.sep_id]


def encode_with_spans(tokenizer, text):
    """Encodes a text as `encode_with_masks` does, without [CLS] and [SEP], with places in the text.

    Returns:
        The ids, and for each its (first character, end). In a vocabulary without a mask, [MASK] is
        text as any other.
    """
    if tokenizer.mask_id is None or MASK not in text:
        return tokenizer.encode_with_offsets(text)
    first, *parts = text.split(MASK)
    ids, spans = tokenizer.encode_with_offsets(first)
    ids, spans, start = list(ids), list(spans), len(first)
    for part in parts:
        more, places = _encode_after_mask(tokenizer, part)
        ids += [tokenizer.mask_id, *more]
        end = start + len(MASK)
        spans += [(start, end), *((end + a, end + b) for a, b in places)]
        start = end + len(part)
    return ids, spans


def _encode_after_mask(tokenizer, text):
    """The ids of a text that directly follows a [MASK], and their places in it."""
    ids, spans = tokenizer.encode_with_offsets(text)
    pieces = tokenize_after_mask(tokenizer, text)
    found = tokenizer.convert_tokens_to_ids(pieces)
    # The two differ in the first word at most.
    same = next(
        (i for i, pair in enumerate(zip(reversed(ids), reversed(found), strict=False))
         if pair[0] != pair[1]), min(len(ids), len(found)),
    )  # fmt: skip
    differ = len(found) - same
    if not differ:
        return found, spans[len(spans) - same :]
    start, end = spans[0][0], spans[len(spans) - same - 1][1]
    prefix = tokenizer.wordpiece.continuation_prefix if hasattr(tokenizer, "basic_tokens") else ""
    texts = [piece.removeprefix(prefix) for piece in pieces[:differ]]
    places = [(start, end)] * differ  # where the pieces do not spell the word, as with jamo
    if "".join(texts) == text[start:end]:
        ends = list(itertools.accumulate(map(len, texts), initial=start))
        places = list(itertools.pairwise(ends))
    return found, [*places, *spans[len(spans) - same :]]


def masked_places(tokenizer, text):
    """The `MaskedPlace` of every [MASK] in what `encode_with_masks` returns for a text."""
    parts = text.split(MASK)
    positions = [i for i, piece in enumerate(encode_with_masks(tokenizer, text))
                 if piece == tokenizer.mask_id]  # fmt: skip
    places = []
    for number, (before, after) in enumerate(zip(parts[:-1], parts[1:], strict=True)):
        # Two masks without a space between them are one word.
        continues = _is_of_word(before[-1:]) if before else number > 0
        followed = _is_of_word(after[:1]) if after else number + 2 < len(parts)
        places.append((continues, followed))
    return [
        MaskedPlace(position, *place) for position, place in zip(positions, places, strict=True)
    ]


def _is_of_word(character):
    return not (character.isspace() or is_punctuation(character))


def tokenize_after_mask(tokenizer, text):
    """Cuts a text that directly follows a [MASK]."""
    if not text or text[0].isspace():
        return tokenizer.tokenize(text)
    if not hasattr(tokenizer, "basic_tokens"):  # SentencePiece marks where a word begins
        first, *rest = tokenizer.tokenize(text)
        return [first.lstrip("\u2581"), *rest] if first != "\u2581" else rest
    first, *rest = tokenizer.basic_tokens(text)
    pieces = tokenizer.wordpiece.continuation_pieces(first)
    if tokenizer.unk_id in tokenizer.convert_tokens_to_ids(pieces):  # as for punctuation
        pieces = tokenizer.wordpiece.pieces(first)
    return [*pieces, *tokenizer.tokenize(" ".join(rest))]
