"""Adds pieces to a WordPiece vocabulary: first in its unused lines, then at its end."""

import dataclasses
import os
import tempfile
import warnings
from collections.abc import Sequence

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.text_encoding import decode_text
from model_formats.adaptation.new_rows import NewRow, plan_row
from model_formats.adaptation.spelling import UNUSED, spelling_of
from tokenization.byte_pieces import byte_of
from tokenization.decoding import UNKNOWN_TOKEN
from tokenization.loading import Tokenizer, load_tokenizer, save_tokenizer


@dataclasses.dataclass(frozen=True)
class AddedTokens:
    """A tokenizer with added tokens."""

    tokenizer: Tokenizer  # the new tokenizer
    filled: tuple[str, ...]  # the added tokens that took an unused line, in order
    appended: tuple[str, ...]  # those after the last line
    known: tuple[str, ...]  # tokens of the list that the vocabulary had already
    impossible: tuple[str, ...]  # those that no text can be cut into, which are not added


def read_tokens(path: str) -> list[str]:
    """Reads a list of tokens, one a line; blank lines and repeats are passed over."""
    lines = decode_text(read_bytes(path), path).split("\n")
    tokens = dict.fromkeys(token for line in lines if (token := line.strip()))
    if not tokens:
        raise InputError(f"{path} must hold a token. Received: blank lines alone")
    return list(tokens)


def add_tokens(tokenizer: Tokenizer, tokens: Sequence[str]) -> AddedTokens:
    """Adds pieces to the vocabulary of a tokenizer that applies WordPiece.

    They are spelled as in the vocabulary ("##는" inside words, "는_" at their ends) and added as
    the tokenizer normalizes them. A single character or an emoji is added inside words too if the
    vocabulary cannot spell it there: it usually follows a word. The longest match wins, so no text
    that contains a piece at its place is cut as before. A token of which normalization leaves
    nothing is refused.
    """
    if tokenizer.kind == "sentencepiece":
        raise InputError(
            "--add_tokens must be given for a WordPiece vocabulary. Received: a SentencePiece "
            "model, whose cuts depend on the scores of all tokens (--tokenizer_dir takes a new one)"
        )
    wanted, known, impossible = _sort_out(tokenizer, tokens)
    wanted += _needed_inside(tokenizer, wanted)
    added = _with_tokens(tokenizer, wanted) if wanted else tokenizer
    missed = [token for token in wanted if not _occurs(added, token)]
    if missed:
        wanted = [token for token in wanted if token not in missed]
        added = _with_tokens(tokenizer, wanted) if wanted else tokenizer
    if not wanted:
        raise InputError(
            f"--add_tokens must name new words. Received: {len(known)} that the vocabulary has, "
            f"{len(impossible) + len(missed)} that the tokenizer cannot produce"
        )
    lines = {token: added.vocab[token] for token in wanted}
    filled = tuple(token for token in wanted if lines[token] in tokenizer.inv_vocab)
    return AddedTokens(
        tokenizer=added,
        filled=filled,
        appended=tuple(wanted[len(filled) :]),
        known=tuple(known),
        impossible=(*impossible, *missed),
    )


def plan_added_rows(old: Tokenizer, added: AddedTokens, size: int) -> list[NewRow]:
    """Finds where each row of a table with added tokens comes from.

    Args:
        size: how many rows the old table has; more than the vocabulary where some are spare.

    Returns:
        The old table's rows, and those that are appended after its end.
    """
    new, tokens = added.tokenizer, {*added.filled, *added.appended}
    spellings = spelling_of(old), spelling_of(new)
    rows = []
    for index in range(max(size, new.vocab_size)):
        token = new.inv_vocab.get(index)
        if token in tokens:
            rows.append(plan_row(token, *spellings))
        else:
            rows.append(NewRow(token, (index,), kept=True))
    return rows


def _sort_out(tokenizer, tokens):
    """Splits tokens into those to add, as the tokenizer spells them, known and impossible ones."""
    wanted, known, impossible = {}, [], []
    for token in tokens:
        spelled = _spelled(tokenizer, token)
        if spelled is None:
            impossible.append(token)
        elif spelled in tokenizer.vocab or spelled in wanted:
            known.append(token)
        else:
            wanted[spelled] = token
    return list(wanted), known, impossible


def _spelled(tokenizer, token):
    """The piece as the vocabulary spells it; None for a text of several words."""
    prefix, text, marker = _parts(tokenizer, token)
    words = tokenizer.basic_tokens(text)
    if not words:
        raise InputError(
            "every token of --add_tokens must be left by the tokenizer's normalization. "
            f"Received: {token!r}, which leaves nothing"
        )
    return prefix + words[0] + marker if len(words) == 1 else None


def _parts(tokenizer, token):
    """The prefix that marks a piece inside words, the text, the marker of a word's end."""
    prefix = tokenizer.wordpiece.continuation_prefix
    marker = getattr(tokenizer.options, "word_end_marker", "")
    prefix = prefix if token.startswith(prefix) and token != prefix else ""
    text = token.removeprefix(prefix)
    marker = marker if text.endswith(marker) and text != marker else ""
    return prefix, text.removesuffix(marker), marker


def _needed_inside(tokenizer, tokens):
    """The pieces inside words of characters and emoji that the vocabulary cannot spell there."""
    sign, needed = tokenizer.wordpiece.continuation_prefix, []
    for token in tokens:
        prefix, text, marker = _parts(tokenizer, token)
        whole = sign + text + marker
        is_word = len(text) > 1 and any(map(str.isalnum, text))
        if prefix or not sign or is_word or whole in tokens or not _continues(tokenizer, text):
            continue
        pieces = tokenizer.wordpiece.continuation_pieces(text + marker)
        by_bytes = tokenizer.wordpiece.unknown == "bytes"
        if UNKNOWN_TOKEN in pieces or (
            by_bytes and any(byte_of(p, sign) is not None for p in pieces)
        ):
            needed.append(whole)
    return needed


def _continues(tokenizer, text):
    """Whether a text can stand inside a word, as punctuation and Hanja usually cannot."""
    return len(tokenizer.basic_tokens("0" + text)) == 1


def _occurs(tokenizer, token):
    """Whether a text is cut into the token; not every word has a marker at its end."""
    prefix, text, marker = _parts(tokenizer, token)
    wordpiece, word = tokenizer.wordpiece, text + _rest_of_word(tokenizer, token)
    if not prefix:
        return token in tokenizer.tokenize(f"{word} {word}")
    if not _continues(tokenizer, text) or token not in wordpiece.continuation_pieces(text + marker):
        return False
    # After which piece, does not matter, unless a longer one is made of both.
    return any(token in tokenizer.tokenize(f"{b}{word} {b}{word}") for b in wordpiece.begin)


def _rest_of_word(tokenizer, token):
    """What follows a token without a marker, where its text with a marker is another token."""
    prefix, text, marker = _parts(tokenizer, token)
    wordpiece, end = tokenizer.wordpiece, getattr(tokenizer.options, "word_end_marker", "")
    if marker or not end:
        return ""
    cut = wordpiece.continuation_pieces if prefix else wordpiece.pieces
    rests = ("", *(piece.removesuffix(end) for piece in wordpiece.inside))
    words = (rest for rest in rests if token in cut(text + rest + end))
    return next((rest for rest in words if _continues(tokenizer, text + rest)), "")


def _with_tokens(tokenizer, tokens):
    """The tokenizer with the tokens in unused lines of its vocabulary, then after its last."""
    lines = tokenizer.vocabulary_bytes.decode("utf-8").split("\n")
    if lines[-1] == "":
        lines.pop()
    unused = (i for i, line in enumerate(lines) if UNUSED.fullmatch(line.strip()))
    for token in tokens:
        place = next(unused, None)
        if place is None:
            lines.append(token)
        else:
            lines[place] = token
    with tempfile.TemporaryDirectory() as folder:
        save_tokenizer(tokenizer, folder)
        with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8", newline="") as file:
            file.write("\n".join(lines) + "\n")
        with warnings.catch_warnings():  # of the vocabulary, which were shown when it was opened
            warnings.simplefilter("ignore")
            return load_tokenizer(folder)
