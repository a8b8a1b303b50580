"""Tokenizes text with TensorFlow operations, equal to the Python tokenizers token for token.

It serves `tf.data`, exported models, and a tokenizer's `encode_batch` and `encode_words`. Text
becomes code points, tables normalize and classify them, and words become strings again for
tensorflow-text's linear-time WordPiece.

Shapes: B texts, C characters, W words, P tokens.
"""

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from bert_common.errors import InputError
from tokenization.options import KoreanTokenizerOptions
from tokenization.tf_graph.normalization import (
    CODE_POINT,
    ISOLATED,
    REPEATABLE,
    SPACE,
    GraphNormalizer,
)
from tokenization.tf_graph.rules import HUGGING_FACE_RULES, google_rules
from tokenization.tf_graph.tables import shift, utf8_sizes
from tokenization.tf_graph.wordpiece import GraphWordPiece

if TYPE_CHECKING:  # it imports this package
    from tokenization.base import TokenizerInterface

KINDS = ("full", "korean", "huggingface")


class GraphTokenizer(tf.Module):
    """A FullTokenizer, KoreanTokenizer or HuggingFaceTokenizer as a TensorFlow graph.

    Building its tables takes about a second. A program that loads a SavedModel with it must import
    tensorflow_text, which registers the operations.

    Args:
        tokenizer: the tokenizer to reproduce, with all of its options.

    Raises:
        InputError: the tokenizer is of a different kind, or its vocabulary has no [UNK] or a token
            too long for tensorflow-text.
    """

    def __init__(self, tokenizer: "TokenizerInterface") -> None:
        super().__init__(name="tokenizer")
        if tokenizer.kind not in KINDS:
            raise InputError(
                f"the graph form is for the kinds {', '.join(KINDS)}. Received: {tokenizer.kind!r}"
            )
        if tokenizer.unk_id is None:
            raise InputError("a vocabulary must hold [UNK] for the graph form. Received: none")
        options, form, rules = _describe(tokenizer)
        self._options = options
        self._longest_word = tokenizer.wordpiece.max_word_characters
        self._normalizer = GraphNormalizer(options, form, rules)
        self._wordpiece = GraphWordPiece(tokenizer, options, rules)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode_words(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Cuts texts into tokens, grouped by word, as `tokenize_words` does.

        Args:
            texts: string [B], UTF-8; an invalid byte is read as U+FFFD, which is dropped.

        Returns:
            int32 RaggedTensor [B, (words), (tokens)].
        """
        # Whitespace is added to every text, so that words, runs and final sigmas end there.
        characters, row_splits, _ = self._normalizer(tf.strings.join([texts, "\n"]))
        words = self._split_words(characters, row_splits)
        ids, _ = self._wordpiece(words.spelled)  # [W, (P)]
        return tf.RaggedTensor.from_row_splits(ids, words.splits, validate=False)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode_batch(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Cuts texts as `encode_words` does, without grouping: int32 RaggedTensor [B, (tokens)]."""
        return self.encode_words(texts).merge_dims(1, 2)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode_with_offsets(self, texts: tf.Tensor) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
        """Cuts texts as `encode_batch` does and finds each token's span in its text.

        Args:
            texts: string [B], UTF-8; an invalid byte counts as one character.

        Returns:
            int32 RaggedTensor [B, (tokens)]: ids; int32 RaggedTensor [B, (tokens), 2]: the first
            character and the end of each token, as from the tokenizer's `encode_with_offsets`.
        """
        characters, row_splits, spans = self._normalizer(
            tf.strings.join([texts, "\n"]), with_spans=True
        )  # [C], [B + 1], [C, 2]
        words = self._split_words(characters, row_splits)
        ids, offsets = self._wordpiece(words.spelled)  # [W, (P)], [P, 2]
        spans = piece_spans(words, ids.value_rowids(), offsets, spans)  # [P, 2]
        splits = tf.gather(ids.row_splits, words.splits)  # [B + 1]
        return (
            tf.RaggedTensor.from_row_splits(ids.values, splits, validate=False),
            tf.RaggedTensor.from_row_splits(spans, splits, validate=False),
        )

    def _split_words(self, characters, row_splits):
        """Splits classified characters [C] into `Words`; row splits are int64 [B + 1]."""
        options = self._options
        space = (characters & SPACE) != 0
        isolated = (characters & ISOLATED) != 0
        after_space = shift(space, 1, True)
        kept, marks = ~space, tf.zeros_like(space)
        if options.shorten_runs:
            kept &= ~self._is_surplus(characters)
        starts = kept & (after_space | isolated | shift(isolated, 1, False))
        if options.marks_eojeols:
            marks = space & ~after_space  # the first space after an eojeol becomes its marker
            if not options.mark_final_word:
                marks &= ~_last_of_rows(marks, row_splits)
            kept |= marks
        places = tf.where(kept)[:, 0]
        begins = tf.where(tf.gather(starts, places))[:, 0]  # [W]
        word_splits = tf.searchsorted(tf.gather(places, begins), row_splits, out_type=tf.int64)
        code_points = tf.bitwise.bitwise_and(tf.gather(characters, places), CODE_POINT)
        letters, begins, places = self._wordpiece.spell(code_points, begins, places)
        letters = tf.RaggedTensor.from_row_starts(letters, begins, validate=False)  # [W, (C)]
        words = tf.strings.unicode_encode(letters, "UTF-8")  # [W]
        lengths = letters.row_lengths()
        marker = options.word_end_marker
        if marker and not options.marks_eojeols:
            marked = tf.ones_like(lengths, tf.bool)
            if not options.mark_final_word:
                last = tf.boolean_mask(word_splits[1:], word_splits[1:] > word_splits[:-1]) - 1
                marked = tf.tensor_scatter_nd_update(
                    marked, last[:, tf.newaxis], tf.zeros_like(last, tf.bool)
                )
            added = self._wordpiece.to_alphabet(tf.constant([*map(ord, marker)]))
            words = tf.where(marked, words + tf.strings.unicode_encode(added, "UTF-8"), words)
            lengths += tf.where(marked, tf.constant(len(marker), tf.int64), 0)
        too_long = tf.zeros_like(lengths, tf.bool)
        if options.unknown == "word":
            too_long = lengths > self._longest_word
            words = tf.where(too_long, self._wordpiece.unknown, words)
        return Words(words, word_splits, letters, places, tf.gather(marks, places), too_long)

    def _is_surplus(self, characters):
        """Returns bool [C]: whether a repeatable character exceeds the length kept of its run."""
        # Whether the `reach` characters before it are equal; doubles `reach` up to that length.
        all_same, reach = characters == shift(characters, 1, -1), 1
        while reach < self._options.shorten_runs:
            step = min(reach, self._options.shorten_runs - reach)
            all_same &= shift(all_same, step, False)
            reach += step
        return all_same & ((characters & REPEATABLE) != 0)


def _describe(tokenizer):
    """Returns the KoreanTokenizerOptions, normalization form and character rules of a graph."""
    if tokenizer.kind == "korean":
        options = tokenizer.options
        return options, options.composition, google_rules(options)
    # Words are split as with KoreanTokenizer's defaults.
    options = KoreanTokenizerOptions(tokenizer.do_lower_case, normalization=None)
    form = "NFD" if tokenizer.decomposes else None
    if tokenizer.kind == "huggingface":
        split = tokenizer.options.tokenize_chinese_chars
        options = dataclasses.replace(options, split_chinese_characters=split)
        return options, form, HUGGING_FACE_RULES
    return options, form, google_rules(options)


def _last_of_rows(flags, row_splits):
    """Keeps only the last True of each row of flags [C], if it has one."""
    places = tf.where(flags)[:, 0]
    row = tf.searchsorted(row_splits, places, side="right")
    last = tf.concat([row[1:] != row[:-1], [True]], axis=0)[: tf.size(row)]
    places = tf.boolean_mask(places, last)[:, tf.newaxis]
    return tf.scatter_nd(places, tf.ones_like(places[:, 0], tf.bool), tf.shape(flags, tf.int64))


AFTER_ALL = 2**31 - 1  # a place after every character


class Words(NamedTuple):
    """The words of all texts, with the characters that they are made of."""

    spelled: tf.Tensor  # string [W]: as WordPiece gets them, with their markers
    splits: tf.Tensor  # int64 [B + 1]: the row splits of the words of each text
    letters: tf.RaggedTensor  # int32 [W, (K)]: their code points, without a marker after a word
    places: tf.Tensor  # int64 [K]: the index of each letter among all characters [C]
    marks: tf.Tensor  # bool [K]: whether it is the marker at the end of an eojeol
    too_long: tf.Tensor  # bool [W]: whether the word is a single [UNK] because of its length


def piece_spans(words: Words, owners: tf.Tensor, offsets: tf.Tensor, spans: tf.Tensor) -> tf.Tensor:
    """Returns the first character and the end of each piece in its text, int32 [P, 2].

    Args:
        owners: the word of each piece, int64 [P].
        offsets: the first byte and the end of each piece in the spelled word, int64 [P, 2].
        spans: the span of each character in its original text, int32 [C, 2].
    """
    spans = tf.gather(spans, words.places)  # [K, 2]
    texts = tf.searchsorted(words.splits, words.letters.value_rowids(), "right", tf.int64)  # [K]
    same = tf.concat([texts[1:] == texts[:-1], [False]], axis=0)[: tf.size(texts)]
    following = tf.where(same, tf.concat([spans[1:, 0], [0]], axis=0)[: tf.size(texts)], AFTER_ALL)
    # A marker has an empty span at the end of the character before it, or that character's span if
    # the next one comes from the same original character.
    before = tf.concat([spans[:1], spans[:-1]], axis=0)  # [K, 2]
    starts = tf.where(following < before[:, 1], before[:, 0], before[:, 1])  # [K]
    markers = tf.stack([starts, before[:, 1]], axis=1)  # [K, 2]
    spans = tf.where(words.marks[:, tf.newaxis], markers, spans)
    letters = words.letters.values  # [K]
    sizes = utf8_sizes(letters)
    ends = tf.cumsum(sizes)  # [K]: where in the bytes of all words each letter ends
    begins = ends - sizes
    first, last = words.letters.row_starts(), words.letters.row_limits() - 1  # [W] each
    first, last = tf.gather(first, owners), tf.gather(last, owners)  # [P] each
    word_begin = tf.gather(begins, first)
    # A piece after the word's letters is its marker.
    after = offsets[:, 0] >= tf.gather(ends, last) - word_begin
    start = tf.searchsorted(begins, word_begin + offsets[:, 0], "right", tf.int64) - 1
    end = tf.searchsorted(begins, word_begin + offsets[:, 1], "left", tf.int64) - 1
    whole = tf.gather(words.too_long, owners)
    start = tf.where(whole, first, tf.minimum(start, last))
    end = tf.where(whole, last, tf.minimum(end, last))
    ends = tf.gather(spans[:, 1], end)
    after &= tf.gather(following, last) >= ends
    return tf.stack([tf.where(after, ends, tf.gather(spans[:, 0], start)), ends], axis=1)
