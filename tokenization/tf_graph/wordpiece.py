"""Cuts words into WordPieces in a TensorFlow graph.

What Python's greedy match can do and tensorflow-text's cannot is put into the vocabulary: a
character without a piece gets a virtual piece, whose id is replaced by the id of [UNK], or by the
ids of a syllable's jamo or a character's bytes. Characters that occur in no piece are replaced by a
character that no token contains, or by one for each of their bytes.

Shapes: W words, K characters of words, P pieces.
"""

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from tokenization.byte_pieces import BYTE_PIECES, LEADING
from tokenization.characters import FIRST_SYLLABLE, LAST_SYLLABLE, is_syllable, jamo_of
from tokenization.decoding import UNKNOWN_WORD
from tokenization.options import KoreanTokenizerOptions
from tokenization.tf_graph import tables
from tokenization.tf_graph.rules import CharacterRules

if TYPE_CHECKING:  # it imports this package
    from tokenization.base import TokenizerInterface

try:
    import tensorflow_text as tf_text
except (ImportError, tf.errors.NotFoundError) as error:  # NotFoundError: of another TensorFlow
    raise InputError(
        "a tokenizer as a TensorFlow graph requires the tensorflow-text of TensorFlow's version "
        f"({tf.__version__}). Received: {error}"
    ) from None

MAX_PIECE_BYTES = 256  # tensorflow-text's limit
# Number of bytes of a character -> the bits of its first byte that say so.
FIRST_BITS = (0, 0, 0xC0, 0xE0, 0xF0)
NO_LIMIT = 1 << 30  # on a word's bytes; the graph itself limits words, by characters


class GraphWordPiece(tf.Module):
    """Cuts words by greedy longest match, equal to `tokenization.wordpiece.WordPiece`.

    Args:
        tokenizer: a tokenizer with a `WordPiece`.
        options: its `KoreanTokenizerOptions`, or equivalent ones.
        rules: its `CharacterRules`.

    Attributes:
        unknown: the character that replaces every character outside the alphabet; no piece
            contains it.
        to_alphabet: a `Table` that does so with code points, and turns spaces into the marker if
            the marker represents them.

    Raises:
        InputError: a piece is too long for tensorflow-text.
    """

    def __init__(
        self,
        tokenizer: "TokenizerInterface",
        options: KoreanTokenizerOptions,
        rules: CharacterRules,
    ) -> None:
        super().__init__(name="wordpiece")
        by_bytes = tokenizer.wordpiece.unknown == "bytes"
        free = _free_characters(tokenizer.vocab, 2 + 256 * by_bytes)
        self.unknown, prefix, *byte_letters = free
        entries, ids = _extend_vocabulary(tokenizer, self.unknown, prefix, rules, byte_letters)
        self._ids = tf.constant([row[0] for row in ids], tf.int32)
        self._more_ids = None
        if max(map(len, ids)) > 1:
            self._more_ids = tf.ragged.constant([row[1:] for row in ids], tf.int32)
        self._tokenizer = tf_text.FastWordpieceTokenizer(
            entries,
            suffix_indicator=prefix,
            max_bytes_per_word=NO_LIMIT,
            token_out_type=tf.int32,
            unknown_token=entries[0],
            no_pretokenization=True,
        )
        alphabet = [ord(c) for c in sorted(set("".join(entries)) - {prefix, *byte_letters})]
        mapped = np.full(tables.CODE_POINTS, ord(self.unknown), np.int32)
        mapped[alphabet] = alphabet
        if options.marks_eojeols:  # the only spaces that are kept
            mapped[tables.having(str.isspace)] = ord(options.word_end_marker)
        self.to_alphabet = tables.Table(mapped)
        self._is_outside: tables.Table | None = None
        if by_bytes:
            self._is_outside = tables.Table(mapped == ord(self.unknown))
            self._byte_letters = tf.constant(list(map(ord, byte_letters)), tf.int32)

    def __call__(self, words: tf.Tensor) -> tuple[tf.RaggedTensor, tf.Tensor]:
        """Cuts words, string [W], of characters of the alphabet.

        Returns:
            The ids, int32 [W, (P)]; the first byte and the end of each piece, int64 [P, 2]. All
            jamo of a syllable have the syllable's span, all bytes of a character the character's.
        """
        pieces, starts, ends = self._tokenizer.tokenize_with_offsets(words)  # [W, (P)] each
        offsets = tf.stack([starts.values, ends.values], axis=1)  # [P, 2]
        ids, splits = self._expand(pieces.values, pieces.row_splits)
        if self._more_ids is not None:
            more = tf.gather(self._more_ids.row_lengths(), pieces.values)
            offsets = tf.repeat(offsets, 1 + more, axis=0)
        return tf.RaggedTensor.from_row_splits(ids, splits, validate=False), offsets

    def spell(
        self, code_points: tf.Tensor, begins: tf.Tensor, places: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Spells words with characters of the alphabet.

        Args:
            code_points: the characters of all words, int32 [K].
            begins: the index of each word's first character, int64 [W].
            places: where each character comes from, int64 [K].

        Returns:
            The same three for the characters of the alphabet, which may be more.
        """
        letters = self.to_alphabet(code_points)
        if self._is_outside is None:
            return letters, begins, places
        outside = self._is_outside(code_points)

        def by_bytes():
            sizes = tf.where(outside, tf.cast(tables.utf8_sizes(code_points), tf.int32), 1)  # [K]
            starts = tf.cumsum(sizes, exclusive=True)
            source = tf.repeat(tf.range(tf.size(sizes)), sizes)  # [more K]
            within = tf.range(tf.size(source)) - tf.gather(starts, source)
            size = tf.gather(sizes, source)
            shifted = tf.bitwise.right_shift(
                tf.gather(code_points, source), 6 * (size - 1 - within)
            )
            first = tf.gather(FIRST_BITS, size) | shifted
            byte = tf.where(within == 0, first, 0x80 | (shifted & 0x3F))
            spelled = tf.gather(self._byte_letters, byte & 0xFF)
            spelled = tf.where(tf.gather(outside, source), spelled, tf.gather(letters, source))
            word_starts = tf.cast(tf.gather(starts, begins), tf.int64)
            return spelled, word_starts, tf.gather(places, source)

        return tf.cond(tf.reduce_any(outside), by_bytes, lambda: (letters, begins, places))

    def _expand(self, pieces, splits):
        """Converts pieces to ids and replaces the ids of virtual pieces."""
        ids = tf.gather(self._ids, pieces)
        if self._more_ids is None:
            return ids, splits
        more = tf.gather(self._more_ids.row_lengths(), pieces)

        def expand():
            first, rest = ids[:, tf.newaxis], tf.gather(self._more_ids, pieces)  # [P, 1], [P, (3)]
            whole = tf.concat([first, rest], axis=1)  # [P, (1 to 4)]
            return whole.values, tf.gather(whole.row_splits, splits)

        return tf.cond(tf.reduce_any(more > 0), expand, lambda: (ids, splits))


def _free_characters(tokens: Iterable[str], count: int) -> list[str]:
    """Returns the first `count` characters of `UNKNOWN_WORD` that no token contains."""
    used = set().union(*tokens)
    return list(itertools.islice((c for c in UNKNOWN_WORD if c not in used), count))


def _extend_vocabulary(
    tokenizer: "TokenizerInterface",
    unknown: str,
    prefix: str,
    rules: CharacterRules,
    byte_letters: Sequence[str],
) -> tuple[list[str], list[list[int]]]:
    """Lists the strings of all pieces, real and virtual, and the ids that replace each.

    The first is tensorflow-text's unknown token, which no text can spell. The letters that spell
    bytes are in no other piece.
    """
    wordpiece, vocab, unk_id = tokenizer.wordpiece, tokenizer.vocab, tokenizer.unk_id
    assert unk_id is not None  # GraphTokenizer accepts no other vocabulary
    entries, ids = [prefix + prefix], [[unk_id]]
    alphabet = {unknown}
    for table, mark in ((wordpiece.begin, ""), (wordpiece.inside, prefix)):
        for text, token in table.items():
            if any(character.isspace() or not rules.clean(character) for character in text):
                continue  # no word contains these
            if len(text.encode("utf-8")) > MAX_PIECE_BYTES:
                raise InputError(
                    f"a token must have at most {MAX_PIECE_BYTES} bytes for the graph form. "
                    f"Received: {token[:20]!r}, {len(text.encode('utf-8'))} bytes"
                )
            alphabet.update(text)
            entries.append(mark + text)
            ids.append([vocab[token]])
    if wordpiece.jamo_fallback:
        alphabet.update(map(chr, range(FIRST_SYLLABLE, LAST_SYLLABLE + 1)))
    for character in sorted(alphabet):
        for table, mark in ((wordpiece.begin, ""), (wordpiece.inside, prefix)):
            if character in table:
                continue
            if wordpiece.jamo_fallback and is_syllable(character):
                first, *rest = jamo_of(character)
                tokens = [table[first], *(wordpiece.inside[jamo] for jamo in rest)]
                entries.append(mark + character)
                ids.append([vocab[token] for token in tokens])
            elif wordpiece.unknown == "character":
                entries.append(mark + character)
                ids.append([unk_id])
            elif wordpiece.unknown == "bytes":
                entries.append(mark + character)
                tokens = wordpiece.bytes_of(character, bool(mark))
                ids.append([vocab[token] for token in tokens])
    for byte, letter in enumerate(byte_letters):
        begin, inside = BYTE_PIECES[byte], BYTE_PIECES[byte]
        if byte in LEADING:
            inside = wordpiece.continuation_prefix + inside
        entries += [letter, prefix + letter]
        ids += [[vocab[begin]], [vocab[inside]]]
    return entries, ids
