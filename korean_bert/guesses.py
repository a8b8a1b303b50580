"""Guesses tokens and whole words for [MASK].

Shapes: B rows, T tokens of a row, V tokens of the vocabulary.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf import PretrainingModel
from bert_tf.summaries.mask_predictions import (
    best_guesses,
    piece_probabilities,
    without_markers,
)
from finetuning.metrics import largest
from korean_bert.masked_text import MaskedPlace
from korean_bert.results import Guess
from tokenization.base import TokenizerInterface
from tokenization.sentencepiece import WORD_START
from tokenization.vocabulary import special_ids

# The minimum number of words that the search keeps at each token: more than the usual number of
# guesses, as the best word need not begin with one of the best first tokens.
BEAM = 10

# The maximum number of word beginnings to continue: each is a row of the next batch, and a row of
# probabilities over the whole vocabulary.
MOST_BEAMS = 100


class MaskGuesser:
    """Runs a model on masked rows, with one graph for any number and length of rows.

    For rows of a few tokens, calling Keras's layers one by one takes five times as long.
    `kinds` are the `PieceKinds` of the vocabulary.
    """

    def __init__(self, model: PretrainingModel, tokenizer: TokenizerInterface) -> None:
        self.kinds, self.config = PieceKinds(tokenizer), model.config
        spec = tf.TensorSpec([None, None], tf.int32)
        self._run = tf.function(
            lambda inputs: {"masked_lm_logits": model(inputs, training=False)["masked_lm_logits"]},
            input_signature=[{"input_ids": spec, "masked_lm_positions": spec}],
            autograph=False,
        )
        self._run.get_concrete_function()  # traced here, not by several threads

    def __call__(self, inputs: Mapping[str, Any], training: bool = False) -> dict[str, tf.Tensor]:
        """Calls the model on ids [B, T] and positions [B, P]; returns "masked_lm_logits"."""
        return self._run({name: tf.constant(value) for name, value in inputs.items()})


def guess_words(
    guesser: MaskGuesser,
    ids: list[int],
    places: Sequence[MaskedPlace],
    top: int,
    max_pieces: int,
    before_each: Callable[[], None] | None = None,
) -> list[list[Guess]]:
    """Returns the best guesses for every [MASK] of a text: words of one or several tokens.

    For each number of tokens, a beam search replaces the [MASK] with that many and fills them in
    from the left. A guess begins a word, or continues the word that its [MASK] directly follows.
    The other [MASK]s of the text stay as they are.

    Args:
        ids: the text's ids, with [CLS] and [SEP].
        top: the maximum number of guesses for each.
        max_pieces: the maximum number of tokens in a guess. 1: a guess is any single token, as in
            `fill_masks`, even one that continues a word although it follows a space.
        before_each: called before each place's search; an exception from it ends the search.

    Returns:
        The guesses for every place, most probable first; each text occurs once.
    """
    kinds = guesser.kinds
    tokenizer = kinds.tokenizer
    if max_pieces == 1:
        positions = [place.position for place in places]
        pieces = best_guesses(guesser, ids, positions, kinds.ids, top, excluded=kinds.special)
        return [[_guess(tokenizer, (i,), share) for i, share in found] for found in pieces]
    longest = min(max_pieces, guesser.config.max_position_embeddings - len(ids) + 1)
    found = []
    for place in places:
        if before_each is not None:
            before_each()
        words: list[tuple[float, tuple[int, ...]]] = []
        guesses: dict[str, Guess] = {}
        for count in range(1, longest + 1):
            words += _search(guesser, ids, place, count, max(top, BEAM))
        for probability, pieces in sorted(words, key=lambda word: -word[0]):
            guess = _guess(tokenizer, pieces, probability)
            guesses.setdefault(guess.text, guess)
        found.append(list(guesses.values())[:top])
    return found


def _search(guesser, ids, place, count, width):
    """Returns the best words of `count` tokens: at most `width` pairs (probability, ids)."""
    kinds = guesser.kinds
    before, after = ids[: place.position], ids[place.position + 1 :]
    beams = [(0.0, ())]  # (logarithm of the probability, ids)
    for number in range(count):
        masks = [kinds.tokenizer.mask_id] * (count - number)
        rows = [[*before, *pieces, *masks, *after] for _, pieces in beams]
        if not rows:  # no token of the vocabulary continues a word
            break
        at = [[place.position + number]] * len(rows)
        shares = np.asarray(piece_probabilities(guesser, rows, at, kinds.ids))[:, 0]  # [B, V]
        allowed = kinds.inside if number or place.continues else kinds.begin  # [V]
        if number + 1 < count:
            allowed = allowed & ~kinds.last
        elif not place.followed:
            allowed = allowed & (kinds.last | ~kinds.last.any())
        with np.errstate(divide="ignore"):
            scores = np.where(allowed, np.log(shares.astype(np.float64)), -np.inf)
        scores += np.array([score for score, _ in beams])[:, None]  # [B, V]
        is_last = number + 1 == count
        best = largest(scores.ravel(), width if is_last else min(width, MOST_BEAMS))
        beams = [
            (scores.flat[i], (*beams[i // len(kinds.ids)][1], kinds.ids[i % len(kinds.ids)]))
            for i in best
            if scores.flat[i] > -np.inf
        ]
    return [(np.exp(score), pieces) for score, pieces in beams]


def _guess(tokenizer, pieces, probability):
    tokens = tuple(tokenizer.convert_ids_to_tokens(pieces))
    return Guess(text_of(tokenizer, tokens), float(probability), tokens)


class PieceKinds:
    """Says which tokens of a vocabulary may begin, continue or end a word.

    Attributes:
        tokenizer: the vocabulary's tokenizer.
        ids: the ids of all tokens, ascending, a list of V; an embedding table may have more rows.
        special: the ids that are never guesses, such as [PAD], [UNK] and [unused1].
        begin, inside: bool [V]: whether a token may begin a word, or continue one.
        last: bool [V]: whether a token ends with the word-end marker; all False if there is none.
    """

    def __init__(self, tokenizer: TokenizerInterface) -> None:
        self.tokenizer = tokenizer
        self.ids = sorted(set(tokenizer.vocab.values()))
        tokens = tokenizer.convert_ids_to_tokens(self.ids)
        self.special = special_ids(tokenizer)
        special = np.array([i in self.special for i in self.ids])
        if hasattr(tokenizer, "basic_tokens"):
            begin = set(tokenizer.wordpiece.begin.values())
            inside = set(tokenizer.wordpiece.inside.values())
            marker = getattr(tokenizer.options, "word_end_marker", "")
        else:
            begin = {token for token in tokens if token.startswith(WORD_START)} - {WORD_START}
            inside, marker = set(tokens) - begin - {WORD_START}, ""
        self.begin = np.array([token in begin for token in tokens]) & ~special
        self.inside = np.array([token in inside for token in tokens]) & ~special
        self.last = np.array([bool(marker) and token.endswith(marker) for token in tokens])


def text_of(tokenizer: TokenizerInterface, tokens: Sequence[str]) -> str:
    """Returns the text of tokens without word markers; conjoining jamo become syllables."""
    parts = without_markers(tokenizer, tokens)
    return unicodedata.normalize("NFC", "".join(part for _, part in parts))
