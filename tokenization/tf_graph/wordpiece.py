"""Cuts words into WordPieces in a TensorFlow graph.

What Python's greedy match can do and tensorflow-text's cannot is put into the vocabulary: a
character without a piece gets a virtual one, whose id is replaced by that of [UNK], or by the ids
of a syllable's jamo.

Shapes: W words, P pieces.
"""

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from tokenization.characters import FIRST_SYLLABLE, LAST_SYLLABLE, is_syllable, jamo_of
from tokenization.decoding import unknown_character
from tokenization.tf_graph import tables

try:
    import tensorflow_text as tf_text
except (ImportError, tf.errors.NotFoundError) as error:  # NotFoundError: of another TensorFlow
    raise InputError(
        "a tokenizer as a TensorFlow graph requires the tensorflow-text of TensorFlow's version "
        f"({tf.__version__}). Received: {error}"
    ) from None

MAX_PIECE_BYTES = 256  # tensorflow-text's limit
NO_LIMIT = 1 << 30  # of a word's bytes; the graph limits words itself, by characters


class GraphWordPiece(tf.Module):
    """Greedy longest match, equal to `tokenization.wordpiece.WordPiece`.

    Args:
        tokenizer: a tokenizer with a `WordPiece`.
        options: its `KoreanTokenizerOptions`, or equivalent ones.
        rules: its `CharacterRules`.

    Attributes:
        unknown: the character that replaces every character outside the alphabet; no piece
            contains it.
        to_alphabet: a `Table` that does so with code points, and turns spaces into the marker where
            the marker represents them.

    Raises:
        InputError: a piece is too long for tensorflow-text.
    """

    def __init__(self, tokenizer, options, rules):
        super().__init__(name="wordpiece")
        self.unknown = unknown_character(tokenizer.vocab)
        prefix = unknown_character([*tokenizer.vocab, self.unknown])
        entries, ids = _extend_vocabulary(tokenizer, self.unknown, prefix, rules)
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
        alphabet = [ord(c) for c in sorted(set("".join(entries)) - {prefix})]
        mapped = np.full(tables.CODE_POINTS, ord(self.unknown), np.int32)
        mapped[alphabet] = alphabet
        if options.marks_eojeols:  # the only spaces that are kept
            mapped[tables.having(str.isspace)] = ord(options.word_end_marker)
        self.to_alphabet = tables.Table(mapped)

    def __call__(self, words):
        """Cuts words, string [W], of characters of the alphabet; returns ids, int32 [W, (P)]."""
        pieces = self._tokenizer.tokenize(words)  # [W, (P)]
        ids, splits = self._expand(pieces.values, pieces.row_splits)
        return tf.RaggedTensor.from_row_splits(ids, splits, validate=False)

    def with_offsets(self, words):
        """Cuts words as a call does; also returns the first byte and the end of each piece.

        All jamo of a syllable have the syllable's bytes.

        Returns:
            ids, int32 [W, (P)]; int64 [P, 2].
        """
        pieces, starts, ends = self._tokenizer.tokenize_with_offsets(words)  # [W, (P)] each
        offsets = tf.stack([starts.values, ends.values], axis=1)  # [P, 2]
        ids, splits = self._expand(pieces.values, pieces.row_splits)
        if self._more_ids is not None:
            more = tf.gather(self._more_ids.row_lengths(), pieces.values)
            offsets = tf.repeat(offsets, 1 + more, axis=0)
        return tf.RaggedTensor.from_row_splits(ids, splits, validate=False), offsets

    def _expand(self, pieces, splits):
        """Converts pieces to ids, and replaces the ids of virtual pieces."""
        ids = tf.gather(self._ids, pieces)
        if self._more_ids is None:
            return ids, splits
        more = tf.gather(self._more_ids.row_lengths(), pieces)

        def expand():
            first, rest = ids[:, tf.newaxis], tf.gather(self._more_ids, pieces)  # [P, 1], [P, (2)]
            whole = tf.concat([first, rest], axis=1)  # [P, (1 to 3)]
            return whole.values, tf.gather(whole.row_splits, splits)

        return tf.cond(tf.reduce_any(more > 0), expand, lambda: (ids, splits))


def _extend_vocabulary(tokenizer, unknown: str, prefix: str, rules):
    """Lists the strings of all pieces, real and virtual, and the ids that replace each.

    The first is tensorflow-text's unknown token, which no text can spell.
    """
    wordpiece, vocab, unk_id = tokenizer.wordpiece, tokenizer.vocab, tokenizer.unk_id
    entries, ids = [prefix + prefix], [[unk_id]]
    alphabet = {unknown}
    for table, mark in ((wordpiece.begin, ""), (wordpiece.inside, prefix)):
        for text, token in table.items():
            if any(character.isspace() or not rules.clean(character) for character in text):
                continue  # no word contains these
            if len(text.encode("utf-8")) > MAX_PIECE_BYTES:
                raise InputError(
                    f"a piece must have at most {MAX_PIECE_BYTES} bytes for the graph form. "
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
    return entries, ids
