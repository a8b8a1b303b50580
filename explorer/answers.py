"""Answers the page's questions, each kind by a row of `ANSWERS`."""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from explorer.attention import LastAttention, show_attention, show_heads
from explorer.errors import RequestError
from explorer.fields import Field, lines, number, options, some_text, text, text_or_none
from explorer.predictions import rounded, show_prediction
from explorer.vectors import show_hits, show_similarity, show_word
from finetuning.tasks import TASKS
from korean_bert.masked_text import MASK, encode_masked
from tokenization.base import TokenizerInterface
from tokenization.characters import is_punctuation

if TYPE_CHECKING:
    from korean_bert.model import Model

# [MASK]s of a text: each takes its own search, and others wait for the model meanwhile.
MOST_MASKS = 30

# Splits a text into tokens.
Cut = Callable[[str], Iterable[str]]

# The name of a vocabulary, and the function that splits texts with it.
Vocabulary = tuple[str, Cut]


@dataclasses.dataclass(frozen=True)
class Explored:
    """The model and vocabularies that the page shows."""

    model: "Model"  # a `korean_bert.Model`
    # Other vocabularies to compare with.
    vocabularies: tuple[Vocabulary, ...] = ()
    # The attention of the last text, which the page requests head by head.
    last_attention: LastAttention = dataclasses.field(default_factory=LastAttention)


def describe(explored: Explored) -> dict[str, Any]:
    """Describes the model to the page, before the first question."""
    model = explored.model
    loaded, config = model.loaded, model.loaded.config
    guesses = loaded.fills_masks and model.tokenizer.mask_id is not None
    return {
        "name": os.path.basename(os.path.abspath(loaded.folder.path)),
        "source": loaded.source,
        "model_type": loaded.model_type,
        **_describe_task(loaded.task),
        "layers": model.num_layers,
        "heads": config.num_attention_heads,
        "hidden_size": config.hidden_size,
        "vocab_size": model.tokenizer.vocab_size,
        "longest": config.max_position_embeddings,
        "pooling": _pooling_of(model),
        "mask": MASK if guesses else None,
        "labels": list(loaded.labels),
        "vocabularies": [name for name, _ in explored.vocabularies],
    }


def _pooling_of(model):
    """Returns the pooling of the vectors; None for unknown modules of sentence-transformers."""
    try:
        return model.pooling
    except InputError:
        return None


def _describe_task(name):
    task = TASKS.get(name)
    if task is None:  # pre-trained
        form = {"fields": ("text", "second"), "optional_fields": ("second",)}
        return {"task": name, "description": name, **form, "row": form["fields"]}
    form = {"fields": task.fields, "optional_fields": task.optional_fields, "row": task.row}
    return {"task": name, "description": task.description, **form}


def show_pieces(explored: Explored, text: str, second: str | None) -> dict[str, Any]:
    """Returns the tokens of one or two texts, with their ids, spans and words."""
    tokenizer = explored.model.tokenizer
    found = [pieces_of(tokenizer, each) for each in (text, second) if each is not None]
    parts = [found[0], *filter(None, found[1:])]  # a second text without tokens is left out
    count = 1 + sum(len(part) + 1 for part in parts)  # [CLS], and a [SEP] after each
    return {"texts": found, "count": count}


def pieces_of(tokenizer: TokenizerInterface, text: str) -> list[dict[str, Any]]:
    """Returns a dict for each token of a text, without [CLS] and [SEP]."""
    ids, spans, _ = encode_masked(tokenizer, text)
    tokens = tokenizer.convert_ids_to_tokens(ids)
    return [
        {"piece": token, "id": index, "start": start, "end": end, "word": word}
        for token, index, (start, end), word in zip(
            tokens, ids, spans, words_of(text, spans), strict=True
        )
    ]


def words_of(text: str, spans: Iterable[tuple[int, int]]) -> list[int]:
    """Returns the number of each span's word; words end at spaces and around punctuation."""
    words, word, last = [], -1, 0
    for start, end in spans:
        between = text[last : max(last, start) + 1]
        apart = any(map(str.isspace, between)) or _is_mark(text[start:end])
        if word < 0 or apart or (last and _is_mark(text[last - 1 : last])):
            word += 1
        words.append(word)
        last = max(last, end)
    return words


def _is_mark(part):
    return len(part) == 1 and is_punctuation(part)


def show_guesses(explored: Explored, text: str, top: int, max_pieces: int) -> dict[str, Any]:
    """Returns the guesses for every [MASK] of a text, which has at most `MOST_MASKS`."""
    if text.count(MASK) > MOST_MASKS:
        raise RequestError("too_many_masks", most=MOST_MASKS, received=text.count(MASK))
    found = explored.model.fill_mask(text, top, max_pieces=max_pieces)
    return {
        "masks": [
            [guess._asdict() | {"probability": rounded(guess.probability)} for guess in guesses]
            for guesses in found
        ]
    }


def show_neighbours(explored: Explored, word: str, top: int) -> dict[str, Any]:
    """Returns the tokens whose vectors are nearest to a word's vector."""
    model = explored.model
    pieces = model.tokenizer.tokenize(word)
    if not pieces:
        raise RequestError("word_without_pieces", word=word)
    found = model.nearest(word, top)
    return {
        "pieces": pieces,
        "neighbours": [
            {"piece": each.piece, "similarity": rounded(each.similarity)} for each in found
        ],
    }


def show_cuts(explored: Explored, text: str) -> dict[str, Any]:
    """Shows how each vocabulary splits a text, the model's first; [MASK] is one token in all."""
    tokenizer = explored.model.tokenizer
    cuts: list[Vocabulary] = [
        (describe(explored)["name"], functools.partial(cut_masked, tokenizer))
    ]
    for name, cut in explored.vocabularies:
        has_masks = tokenizer.mask_id is not None
        cuts.append((name, functools.partial(cut_around_masks, cut) if has_masks else cut))
    return {"cuts": [{"name": name, "pieces": pieces_by_word(cut, text)} for name, cut in cuts]}


def cut_masked(tokenizer: TokenizerInterface, text: str) -> list[str]:
    """Returns the tokens of a text as the model reads it."""
    return tokenizer.convert_ids_to_tokens(encode_masked(tokenizer, text).ids)


def cut_around_masks(cut: Cut, text: str) -> list[str]:
    """Returns the tokens of a text in a vocabulary that may have no [MASK] of its own."""
    first, *others = text.split(MASK)
    return [*cut(first), *(piece for part in others for piece in (MASK, *cut(part)))]


def pieces_by_word(cut: Cut, text: str) -> list[dict[str, Any]]:
    """Returns a vocabulary's tokens of a text, each with the number of its word.

    Words are separated by spaces; if a vocabulary has tokens across spaces, each token is a word.
    """
    whole, words = list(cut(text)), [list(cut(word)) for word in text.split()]
    numbers = [number for number, pieces in enumerate(words) for _ in pieces]
    if whole != [piece for pieces in words for piece in pieces]:
        numbers = range(len(whole))
    return [{"piece": piece, "word": number} for piece, number in zip(whole, numbers, strict=True)]


# As many guesses or neighbours as a person looks through.
TOP = number(1, 30)
# More layers or heads than any model has; this model's numbers are checked where they are used.
MANY = number(0, 999)

# The last part of the address -> the function and the fields that it takes besides `Explored`.
ANSWERS: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, Field]]] = {
    "pieces": (show_pieces, {"text": Field(text), "second": Field(text_or_none, None)}),
    "guesses": (
        show_guesses,
        {
            "text": Field(some_text),
            "top": Field(TOP, 5),
            "max_pieces": Field(number(1, 4), 3),
        },
    ),
    "heads": (show_heads, {"text": Field(text), "second": Field(text_or_none, None)}),
    "attention": (
        show_attention,
        {
            "text": Field(text),
            "second": Field(text_or_none, None),
            "layer": Field(MANY, 0),
            "head": Field(MANY, 0),
        },
    ),
    "neighbours": (show_neighbours, {"word": Field(some_text), "top": Field(TOP, 10)}),
    "similarity": (
        show_similarity,
        {
            "first": Field(some_text),
            "second": Field(some_text),
            "pooling": Field(text_or_none, None),  # None: the model's own
        },
    ),
    "search": (
        show_hits,
        {"query": Field(some_text), "lines": Field(lines), "top": Field(TOP, 10)},
    ),
    "word": (
        show_word,
        {
            "word": Field(some_text),
            "first": Field(some_text),
            "second": Field(some_text),
            "layer": Field(number(-1, 999), -1),
        },
    ),
    "cuts": (show_cuts, {"text": Field(text)}),
    "prediction": (
        show_prediction,
        {
            "text": Field(some_text),
            "second": Field(text_or_none, None),
            "options": Field(options, None),
        },
    ),
}
