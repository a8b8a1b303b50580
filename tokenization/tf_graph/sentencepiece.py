"""Tokenizes text with a SentencePiece model in a TensorFlow graph, as the Python tokenizer does.

Shapes: B texts, C characters, P pieces.
"""

import tensorflow as tf

from bert_common.errors import InputError
from tokenization.sentencepiece import (
    DECOMPOSE_WITHOUT_MARKS,
    SentencePieceTokenizer,
    split_numbers,
)
from tokenization.tf_graph import tables
from tokenization.tf_graph.normalization import with_final_sigmas
from tokenization.tf_graph.tables import (
    Replacements,
    Table,
    places_in_texts,
    shift,
    utf8_sizes,
)
from tokenization.tf_graph.wordpiece import tf_text

SPACE = ord(" ")


class GraphSentencePiece(tf.Module):
    """A SentencePieceTokenizer as a TensorFlow graph.

    If two segmentations have the same score, as in a run of one symbol, tensorflow-text's release
    of SentencePiece may choose a different one than the Python library.

    Args:
        tokenizer: the tokenizer to reproduce, with its options and its model.

    Attributes:
        model: tensorflow-text's tokenizer; a module must hold it to be saved with it.

    Raises:
        InputError: the model has no piece for the comma, at which numbers are cut.
    """

    def __init__(self, tokenizer: SentencePieceTokenizer) -> None:
        super().__init__(name="tokenizer")
        model = tokenizer.sp_model
        if model.piece_to_id(",") == tokenizer.unk_id:
            raise InputError(
                "for the graph form a SentencePiece model must have a token ','. Received: none"
            )
        self._lower = tokenizer.do_lower_case
        self._preprocesses = self._lower is not None
        self._of_transformers = tokenizer.options.variant == "huggingface"
        if self._preprocesses:
            self._spaces = Table(tables.having(str.isspace))
            self._decomposed = Replacements(tables.replacements(DECOMPOSE_WITHOUT_MARKS.replace))
            if self._lower:
                self._lowered = Replacements(tables.replacements(str.lower))
                self._cased, self._ignored = map(Table, tables.casing())
        self.model = tf_text.SentencepieceTokenizer(tokenizer.vocabulary_bytes, tf.int32)
        parts = [
            split_numbers(model, [model.id_to_piece(number)])
            for number in range(model.get_piece_size())
        ]
        self._parts = tf.ragged.constant(
            [tokenizer.convert_tokens_to_ids(part) for part in parts], tf.int32
        )  # [vocabulary, (parts)]
        # The number of characters of a piece after each of its parts.
        self._after = tf.ragged.constant(
            [[sum(map(len, part[i + 1 :])) for i in range(len(part))] for part in parts], tf.int64
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode_batch(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Cuts texts, string [B] in UTF-8, into pieces: int32 RaggedTensor [B, (pieces)]."""
        strings, _ = self._preprocess(texts)
        pieces = self.model.tokenize(strings)  # [B, (P)]
        ids = tf.gather(self._parts, pieces.values)  # [P, (parts)]
        splits = tf.gather(ids.row_splits, pieces.row_splits)
        return tf.RaggedTensor.from_row_splits(ids.values, splits, validate=False)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Cuts texts and finds each piece, as `GraphTokenizer.encode_with_offsets` does."""
        strings, spans = self._preprocess(texts)  # [B], [B, (C), 2]
        pieces, begins, ends = self.model.tokenize_with_offsets(strings)  # [B, (P)] each
        # Byte offsets in a string become character indices among all strings.
        letters = tf.strings.unicode_decode(strings, "UTF-8")  # [B, (C)]
        letter_begins = tf.cumsum(utf8_sizes(letters.values), exclusive=True)  # [C]
        lengths = tf.cast(tf.strings.length(strings), tf.int64)  # [B]
        text_begins = tf.gather(tf.cumsum(lengths, exclusive=True), pieces.value_rowids())  # [P]
        begins = tf.searchsorted(letter_begins, begins.values + text_begins, "left", tf.int64)
        ends = tf.searchsorted(letter_begins, ends.values + text_begins, "left", tf.int64)
        ids = tf.gather(self._parts, pieces.values)  # [P, (parts)]
        owner = ids.value_rowids()  # [parts]
        after = tf.gather(self._after, pieces.values).values  # [parts]
        begins, last = tf.gather(begins, owner), tf.gather(ends, owner)  # [parts]
        part_ends = tf.maximum(begins, last - after)
        is_first = owner != shift(owner, 1, -1)
        part_begins = tf.where(is_first, begins, shift(part_ends, 1, 0))
        splits = tf.gather(ids.row_splits, pieces.row_splits)
        counts = splits[1:] - splits[:-1]
        row_begins = tf.repeat(letters.row_starts(), counts)  # [parts]
        row_ends = tf.repeat(letters.row_limits(), counts)  # [parts]
        found = _original_spans(spans, part_begins, part_ends, row_begins, row_ends)
        return (
            tf.RaggedTensor.from_row_splits(ids.values, splits, validate=False),
            tf.RaggedTensor.from_row_splits(found, splits, validate=False),
        )

    def _preprocess(self, texts):
        """Returns preprocessed texts [B], and the original span of each character, int32 [C, 2]."""
        # Whitespace is added to every text, so that words and final sigmas end there.
        ended = tf.strings.join([texts, "\n"]) if self._preprocesses else texts
        rows = tf.strings.unicode_decode(ended, "UTF-8")  # [B, (C)]
        spans = places_in_texts(rows)  # [C, 2]
        if self._of_transformers:
            rows, spans = self._prepare_for_transformers(rows, spans)
        if not self._preprocesses:
            return tf.strings.unicode_encode(rows, "UTF-8"), spans
        characters, splits, spans = self._with_single_spaces(rows, spans)
        characters, splits, source = self._decomposed(characters, splits)
        spans = tf.gather(spans, source)
        if self._lower:
            characters = with_final_sigmas(characters, self._cased, self._ignored)
            characters, splits, source = self._lowered(characters, splits)
            spans = tf.gather(spans, source)
        # The last character of a text is the space that was added.
        count = tf.size(characters, tf.int64)
        lasts = tf.boolean_mask(splits[1:], splits[1:] > splits[:-1]) - 1
        kept = tf.scatter_nd(lasts[:, tf.newaxis], tf.ones_like(lasts), count[tf.newaxis]) == 0
        rows = tf.RaggedTensor.from_row_splits(characters, splits, validate=False)
        kept = tf.RaggedTensor.from_row_splits(kept, splits, validate=False)
        strings = tf.strings.unicode_encode(tf.ragged.boolean_mask(rows, kept), "UTF-8")
        return strings, tf.boolean_mask(spans, kept.values)

    def _prepare_for_transformers(self, rows, spans):
        """Applies the first steps of the variant "huggingface" to rows [B, (C)], spans [C, 2]."""
        characters, splits, spans = with_double_quotes(rows, spans)
        if self._lower:  # each character by itself, so no sigma becomes a final one
            characters, splits, source = self._lowered(characters, splits)
            spans = tf.gather(spans, source)
        return tf.RaggedTensor.from_row_splits(characters, splits, validate=False), spans

    def _with_single_spaces(self, rows, spans):
        """Joins runs of spaces, drops leading ones; returns characters, row splits, spans."""
        space = self._spaces(rows.values)
        kept = ~space | ~shift(space, 1, True)  # a text ends in a space
        places = tf.where(kept)[:, 0]
        characters = tf.gather(tf.where(space, SPACE, rows.values), places)
        is_space, spans = tf.gather(space, places), tf.gather(spans, places)  # [C], [C, 2]
        previous = tf.concat([spans[:1, 1], spans[:-1, 1]], axis=0)
        following = tf.concat([spans[1:, 0], spans[-1:, 0]], axis=0)
        around = tf.stack([previous, following], axis=1)
        spans = tf.where(is_space[:, tf.newaxis], around, spans)
        return characters, tf.searchsorted(places, rows.row_splits, out_type=tf.int64), spans


def with_double_quotes(
    rows: tf.RaggedTensor, spans: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Replaces each `` and '' (`tokenization.sentencepiece.QUOTES`) by a double quotation mark.

    Takes code points, int32 RaggedTensor [B, (C)], with their spans in the texts, int32 [C, 2].
    Returns code points, row splits and spans; a new quotation mark has the span of both characters.
    """
    characters, count = rows.values, tf.size(rows.values, tf.int64)
    begins = tf.scatter_nd(
        rows.row_splits[:, tf.newaxis], tf.ones_like(rows.row_splits), count[tf.newaxis] + 1
    )[:-1]
    # A run of one character is divided into pairs from its left.
    runs = tf.where((begins > 0) | (characters != shift(characters, 1, 0)))[:, 0]
    places = tf.range(count)
    within = places - tf.gather(runs, tf.searchsorted(runs, places, "right", tf.int64) - 1)
    is_quote = (characters == ord("`")) | (characters == ord("'"))
    second = is_quote & (within % 2 == 1)
    first = tf.concat([second[1:], [False]], axis=0)[:count]
    characters = tf.where(first, ord('"'), characters)
    following = tf.concat([spans[1:, 1], spans[-1:, 1]], axis=0)
    ends = tf.where(first, following, spans[:, 1])
    kept = tf.where(~second)[:, 0]
    spans = tf.gather(tf.stack([spans[:, 0], ends], axis=1), kept)
    splits = tf.searchsorted(kept, rows.row_splits, out_type=tf.int64)
    return tf.gather(characters, kept), splits, spans


def _original_spans(spans, begins, ends, row_begins, row_ends):
    """Returns the spans of pieces in the original texts, as `AlignedText.span` does.

    Args:
        spans: the span of each character of all strings, int32 [C, 2].
        begins, ends: the first character and the end of each piece among them, int64 [P].
        row_begins, row_ends: the first character and the end of each piece's string, int64 [P].

    Returns:
        int32 [P, 2].
    """
    padded = tf.concat([spans, [[0, 0]]], axis=0)  # so that no index is out of range
    first, last = tf.gather(padded[:, 0], begins), tf.gather(padded[:, 1], tf.maximum(ends - 1, 0))
    place = tf.gather(padded[:, 1], tf.maximum(begins - 1, 0))
    place = tf.where(begins > row_begins, place, 0)
    empty = begins >= ends
    # Empty, between two parts of one original character; the next row's characters do not count.
    inside = empty & (begins < row_ends) & (first < place)
    starts = tf.where(empty & ~inside, place, first)
    return tf.stack([starts, tf.where(empty, place, last)], axis=1)
