"""Compares the vectors of texts, and of one word in two sentences.

Shapes: L layers, T tokens of a text with [CLS] and [SEP], P points of a picture, H hidden.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from explorer.errors import RequestError, malformed
from explorer.predictions import rounded

if TYPE_CHECKING:
    from explorer.answers import Explored
    from korean_bert.results import HiddenStates


def show_similarity(
    explored: "Explored", first: str, second: str, pooling: str | None
) -> dict[str, Any]:
    """Returns the cosine similarity of two texts in every layer, the embedding output first."""
    model = explored.model
    layers = range(model.num_layers + 1)
    vectors = model.embed([first, second], pooling, layers)  # [2, L + 1, H]
    return {"similarities": [rounded(cosine(*pair)) for pair in vectors.swapaxes(0, 1)]}


def show_hits(explored: "Explored", query: str, lines: Sequence[str], top: int) -> dict[str, Any]:
    """Returns the lines that are most similar to a query, nearest first."""
    hits = explored.model.search(query, list(lines), top)
    return {"hits": [{"text": hit.text, "similarity": rounded(hit.score)} for hit in hits]}


def show_word(
    explored: "Explored", word: str, first: str, second: str, layer: int
) -> dict[str, Any]:
    """Shows by layer how much a word's vector depends on its sentence, with a picture of one layer.

    Both sentences must contain the word; if it has several tokens, its vector is their mean. The
    `layer` of the picture is 0 for the embedding output, -1 for the last layer.
    """
    model = explored.model
    if layer > model.num_layers:
        raise malformed(
            f"layer must be from 0 to {model.num_layers}, or -1 for the last. Received: {layer}"
        )
    layer = model.num_layers if layer < 0 else layer
    sentences, words = [], []
    for sentence in (first, second):
        states = model.hidden_states(sentence)
        inside = pieces_inside(states.spans, word, sentence)
        sentences.append((states, inside))
        words.append(states.vectors[:, inside].mean(axis=1))  # [L + 1, H]
    return {
        "layer": layer,
        "similarities": [rounded(cosine(*pair)) for pair in zip(*words, strict=True)],
        **picture(sentences, [vectors[layer] for vectors in words], word, layer),
    }


def pieces_inside(spans: Sequence[tuple[int, int] | None], word: str, sentence: str) -> list[int]:
    """Returns the indices of the tokens that hold the first occurrence of a word in its sentence.

    `spans` has the span of every token in the row, None for [CLS] and [SEP].
    """
    start = sentence.find(word)
    if start < 0:
        raise RequestError("word_not_in_sentence", word=word, sentence=sentence)
    end = start + len(word)
    inside = [i for i, span in enumerate(spans) if span and span[0] < end and span[1] > start]
    if not inside:
        raise RequestError("word_without_pieces", word=word)
    return inside


def picture(
    sentences: Sequence[tuple["HiddenStates", list[int]]],
    words: Sequence[np.ndarray],
    label: str,
    layer: int,
) -> dict[str, Any]:
    """Projects the tokens of both sentences onto the two directions in which they differ most.

    Each sentence comes with the indices of the word's tokens; `words` are its two vectors [H].

    Returns:
        "points": dicts with x and y from -1 to 1; the word is a single point of its sentence.
        "share": the share of the variance that the picture shows.
    """
    points, vectors = [], []
    for number, ((states, inside), word) in enumerate(zip(sentences, words, strict=True)):
        points.append({"label": label, "sentence": number, "is_word": True})
        vectors.append(word)
        for place, piece in enumerate(states.pieces):
            if states.spans[place] is not None and place not in inside:
                points.append({"label": piece, "sentence": number, "is_word": False})
                vectors.append(states.vectors[layer, place])
    centred = np.stack(vectors).astype(np.float64)  # [P, H]
    centred -= centred.mean(axis=0)
    left, scales, _ = np.linalg.svd(centred, full_matrices=False)
    places = (left * scales)[:, :2]  # [P, 2]
    # The signs are arbitrary: the farthest point of each direction is put right, or at the top.
    farthest = np.abs(places).argmax(axis=0)
    places *= np.where(places[farthest, [0, 1]] < 0, -1, 1)
    places /= max(np.abs(places).max(), np.finfo(np.float64).tiny)
    for point, (x, y) in zip(points, places, strict=True):
        point.update(x=rounded(x), y=rounded(y))
    total = max((scales**2).sum(), np.finfo(np.float64).tiny)
    return {"points": points, "share": rounded((scales[:2] ** 2).sum() / total)}


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    """Returns the cosine of the angle between two vectors [H]; 0 if one has length 0."""
    first, second = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(first) * np.linalg.norm(second)
    return first @ second / lengths if lengths else 0.0
