"""Adds tokens to a WordPiece vocabulary, first in its unused lines, then at its end."""

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
    appended: tuple[str, ...]  # the added tokens after the last line
    known: tuple[str, ...]  # tokens of the list that were already in the vocabulary
    impossible: tuple[str, ...]  # texts of several words, which cannot be tokens; not added


def read_tokens(path: str) -> list[str]:
    """Reads a list of tokens, one per line; blank lines and repeats are skipped."""
    lines = decode_text(read_bytes(path), path).split("\n")
    tokens = dict.fromkeys(token for line in lines if (token := line.strip()))
    if not tokens:
        raise InputError(f"{path} must hold a token. Received: blank lines alone")
    return list(tokens)


def add_tokens(tokenizer: Tokenizer, tokens: Sequence[str]) -> AddedTokens:
    """Adds tokens to the vocabulary of a WordPiece tokenizer.

    Tokens are spelled as in the vocabulary ("##는" inside words, "는_" at their ends) and are
    normalized by the tokenizer first. A single character or an emoji is also added in its
    word-internal form if the vocabulary cannot spell it there, because it usually follows a word.
    The longest match wins, so any text that contains an added token in its position is tokenized
    differently from before. Raises an `InputError` for a token that normalization empties.
    """
    if tokenizer.kind == "sentencepiece":
        raise InputError(
            "--add_tokens must be given for a WordPiece vocabulary. Received: a SentencePiece "
            "model, whose cuts depend on the scores of all tokens (--tokenizer_dir takes a new one)"
        )
    wanted, known, impossible = _sort_out(tokenizer, tokens)
    wanted += _needed_inside(tokenizer, wanted)
    if not wanted:
        raise InputError(
            f"--add_tokens must name new words. Received: {len(known)} that the vocabulary has, "
            f"{len(impossible)} that the tokenizer cannot produce"
        )
    added = _with_tokens(tokenizer, wanted)
    lines = {token: added.vocab[token] for token in wanted}
    filled = tuple(token for token in wanted if lines[token] in tokenizer.inv_vocab)
    return AddedTokens(
        tokenizer=added,
        filled=filled,
        appended=tuple(wanted[len(filled) :]),
        known=tuple(known),
        impossible=tuple(impossible),
    )


def plan_added_rows(old: Tokenizer, added: AddedTokens, size: int) -> list[NewRow]:
    """Finds the source of each row of an embedding table with added tokens.

    Args:
        size: the number of rows of the old table; larger than the vocabulary if it has spare rows.

    Returns:
        The old table's rows, followed by the rows appended to it.
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
    """Sorts tokens into new ones (as the tokenizer spells them), known and impossible ones."""
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
    """Returns the token as the vocabulary spells it, or None for a text of several words."""
    prefix, text, marker = _parts(tokenizer, token)
    words = tokenizer.basic_tokens(text)
    if not words:
        raise InputError(
            "every token of --add_tokens must be left by the tokenizer's normalization. "
            f"Received: {token!r}, which leaves nothing"
        )
    return prefix + words[0] + marker if len(words) == 1 else None


def _parts(tokenizer, token):
    """Splits a token into its continuation prefix, its text and its word-end marker."""
    sign = tokenizer.wordpiece.continuation_prefix
    end = getattr(tokenizer.options, "word_end_marker", "")
    prefix = sign if token.startswith(sign) and token != sign else ""
    text = token.removeprefix(prefix)
    marker = end if text.endswith(end) and text != end else ""
    return prefix, text.removesuffix(marker), marker


def _needed_inside(tokenizer, tokens):
    """Returns word-internal forms of characters and emoji that the vocabulary cannot spell."""
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
    """Returns True if a text can continue a word; punctuation and Hanja usually cannot."""
    return len(tokenizer.basic_tokens("0" + text)) == 1


def _with_tokens(tokenizer, tokens):
    """Returns the tokenizer with tokens in its unused vocabulary lines, then after the last."""
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
        with warnings.catch_warnings():  # already shown when the old vocabulary was opened
            warnings.simplefilter("ignore")
            return load_tokenizer(folder)
