"""Encodes texts in which [MASK] stands for what a model has to guess."""

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
