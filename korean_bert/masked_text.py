"""Encodes texts in which [MASK] stands for what a model has to guess."""

from typing import NamedTuple

from tokenization.base import TokenizerInterface
from tokenization.characters import is_punctuation

MASK = "[MASK]"


class MaskedPlace(NamedTuple):
    """The place of a [MASK] in a text."""

    position: int  # among the ids
    continues: bool  # whether it directly follows a part of its word, as a particle does
    followed: bool  # whether a part of its word directly follows it


class MaskedText(NamedTuple):
    """An encoded text with a mask for every [MASK], without [CLS] and [SEP]."""

    ids: list[int]
    spans: list[tuple[int, int]]  # (first character, end) of each token in the text
    places: list[MaskedPlace]  # one for every [MASK]


def encode_masked(tokenizer: TokenizerInterface, text: str) -> MaskedText:
    """Encodes a text with the mask's id for every [MASK].

    Text that follows a [MASK] without a space continues its word: in "[MASK]는 갔다" the mask is a
    noun, and "는" a particle. In a vocabulary without a mask, [MASK] is ordinary text.
    """
    mask_id = tokenizer.mask_id
    parts = [text] if mask_id is None else text.split(MASK)
    last, start, edges = len(parts) - 1, 0, []
    ids: list[int] = []
    spans: list[tuple[int, int]] = []
    positions: list[int] = []
    for number, part in enumerate(parts):
        if number and mask_id is not None:
            positions.append(len(ids))
            ids.append(mask_id)
            spans.append((start, start + len(MASK)))
            start += len(MASK)
        found = tokenizer.encode_part(part, number > 0, number < last)
        ids += found.ids
        spans += [(start + a, start + b) for a, b in found.spans]
        edges.append(found.edges)
        start += len(part)
    places = []
    for number, position in enumerate(positions):
        # Two masks without a space between them are one word.
        before, after = edges[number][1], edges[number + 1][0]
        continues = _is_of_word(before) if before else number > 0
        followed = _is_of_word(after) if after else number + 1 < last
        places.append(MaskedPlace(position, continues, followed))
    return MaskedText(ids, spans, places)


def with_ends(tokenizer: TokenizerInterface, ids: list[int]) -> list[int]:
    """Adds [CLS] and [SEP] around the ids."""
    assert tokenizer.cls_id is not None and tokenizer.sep_id is not None  # the caller has checked
    return [tokenizer.cls_id, *ids, tokenizer.sep_id]


def _is_of_word(character):
    return not (character.isspace() or is_punctuation(character))
