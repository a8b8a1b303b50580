"""The tokenizers as TensorFlow graphs, equal to the Python ones piece for piece.

For `tf.data` and for exported models; `encode_batch` and `encode_words` of a tokenizer run it too.
Text becomes code points, tables class them, words become strings again for tensorflow-text's
linear-time WordPiece. A row in which a character does not simply stand for one other (it composes,
is dropped, has a capital sigma) takes a thorough way instead of a plain one.

What Python's greedy match can do that tensorflow-text's cannot is put into the vocabulary: a
character with no piece of its own is a virtual piece, whose id becomes one [UNK] or the ids of a
syllable's jamo.

Legend: B texts, C characters, W words, P pieces.
"""

import unicodedata

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from tokenization.characters import (
    MAX_WORD_CHARACTERS,
    is_chinese,
    is_control,
    is_punctuation,
    is_syllable,
    jamo_of,
    repeatable_characters,
)
from tokenization.decoding import UNKNOWN_WORD, unknown_character
from tokenization.normalization import STRIP_ACCENTS
from tokenization.tf_graph import tables
from tokenization.tf_graph.lookup import Replacements, Table

try:
    import tensorflow_text as tf_text
except (ImportError, tf.errors.NotFoundError) as error:  # the second: made for another TensorFlow
    raise InputError(
        "a tokenizer as a TensorFlow graph needs tensorflow-text of TensorFlow's own version "
        f"({tf.__version__}). Received: {error}"
    ) from None

# Above the 21 bits of a code point.
SPACE, ALONE, REPEATABLE, THOROUGH = (1 << bit for bit in range(21, 25))
CODE_POINT = SPACE - 1

SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
PLACEHOLDER = 0xF8FF  # of private use: no form of normalisation knows it

MAX_PIECE_BYTES = 256  # tensorflow-text's limit
NO_LIMIT = 1 << 30  # its limit of bytes in a word; what the limit is for is done here, by character


class GraphTokenizer(tf.Module):
    """A FullTokenizer or KoreanTokenizer as a graph.

    The tables that it makes take about a second. A program that loads a SavedModel with it must
    import tensorflow_text, which registers the operations.

    Args:
        tokenizer: what to be equal to, with all of its switches.

    Raises:
        InputError: the vocabulary has no [UNK], or a piece too long for tensorflow-text; another
            kind of tokenizer.
    """

    def __init__(self, tokenizer):
        super().__init__(name="tokenizer")
        if tokenizer.kind not in SETTINGS:
            raise InputError(
                f"The graph form is for the kinds {', '.join(SETTINGS)}. "
                f"Received: {tokenizer.kind!r}"
            )
        if tokenizer.unk_id is None:
            raise InputError("A vocabulary must hold [UNK] for the graph form. Received: none")
        settings = SETTINGS[tokenizer.kind](tokenizer)
        self._form = settings["form"]
        self._lower = tokenizer.do_lower_case
        self._strip = settings["strip"]
        self._marker = settings["marker"]
        self._mark_eojeols = settings["mark_eojeols"]
        self._mark_final = settings["mark_final"]
        self._runs = settings["shorten_runs"]
        self._limited = tokenizer.wordpiece.unknown == "word"

        clean = tables.cleaned(*settings["clean"])
        self._cleaned = Replacements(clean)
        if self._lower:
            self._lowered = Replacements(tables.replacements(str.lower))
            self._cased, self._ignored = map(Table, tables.casing())
        if self._strip:
            self._stripped = Replacements(tables.replacements(_without_accent))
        if self._form:
            self._hidden = Table(tables.unassigned() | tables.members(chr(PLACEHOLDER)))
        classes = np.arange(tables.CODE_POINTS, dtype=np.int32)
        classes |= SPACE * tables.having(str.isspace)
        for alone in settings["alone"]:
            classes |= ALONE * tables.having(alone)
        if self._runs:
            classes |= REPEATABLE * tables.members(repeatable_characters())
        self._classes = Table(classes)
        self._plain = Table(self._plain_rows(clean, classes))

        unknown, prefix = _two_unused_characters(tokenizer.vocab)
        self._unknown = unknown
        entries, ids = _extended_vocabulary(tokenizer, unknown, prefix)
        self._ids = tf.constant([row[0] for row in ids], tf.int32)
        self._more_ids = None
        if max(map(len, ids)) > 1:
            self._more_ids = tf.ragged.constant([row[1:] for row in ids], tf.int32)
        self._wordpiece = tf_text.FastWordpieceTokenizer(
            entries,
            suffix_indicator=prefix,
            max_bytes_per_word=NO_LIMIT,
            token_out_type=tf.int32,
            unknown_token=entries[0],
            no_pretokenization=True,
        )
        known = np.full(tables.CODE_POINTS, ord(unknown), np.int32)
        alphabet = sorted(set("".join(entries)) - {prefix})
        known[[ord(character) for character in alphabet]] = [ord(c) for c in alphabet]
        if self._mark_eojeols:  # the only spaces that are kept
            known[(classes & SPACE) != 0] = ord(self._marker)
        self._known = Table(known)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode_words(self, texts):
        """Cuts texts into pieces, grouped by word, as `tokenize_words` does.

        Args:
            texts: string [B], UTF-8; a byte that is not is read as U+FFFD, which is dropped.

        Returns:
            int32 RaggedTensor [B, (words), (pieces)].
        """
        return self._pieces(texts)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode_batch(self, texts):
        """Cuts texts into pieces, as `encode` does.

        Args:
            texts: string [B], UTF-8; a byte that is not is read as U+FFFD, which is dropped.

        Returns:
            int32 RaggedTensor [B, (pieces)].
        """
        return self._pieces(texts).merge_dims(1, 2)

    def _plain_rows(self, clean, classes) -> np.ndarray:
        """What each character becomes in a plain row, or THOROUGH."""
        steps = [clean]
        if self._lower:
            steps.append(tables.replacements(str.lower))
        if self._form == "NFD":
            steps.append(tables.replacements(tables.decomposed_without_accents))
        character = np.arange(tables.CODE_POINTS, dtype=np.int32)
        thorough = character == tables.REPLACEMENT
        if self._lower:
            thorough |= character == SIGMA
        stages = [character]
        for step in steps:
            one, is_one = tables.single(step)
            thorough |= ~is_one[character]
            character = one[character]
            stages.append(character)
        if self._form == "NFC":
            for stage in stages:
                thorough |= tables.may_normalize()[stage]
        elif self._form == "NFD":
            # Accents are dropped; other marks would have to be put in order.
            thorough |= tables.having(unicodedata.combining)[character]
        return np.where(thorough, THOROUGH, classes[character]).astype(np.int32)

    def _pieces(self, texts):
        # Every text ends in a space, so that words, runs and sigmas end there by themselves.
        rows = tf.strings.unicode_decode(tf.strings.join([texts, "\n"]), "UTF-8")  # [B, (C)]
        characters = self._plain(rows.values)  # [C]
        thorough = (characters & THOROUGH) != 0
        characters, row_splits = tf.cond(
            tf.reduce_any(thorough),
            lambda: self._with_thorough_rows(rows, characters, thorough),
            lambda: (characters, rows.row_splits),
        )
        words, word_splits = self._words(characters, row_splits)
        pieces = self._wordpiece.tokenize(words)  # [W, (P)]
        values, piece_splits = self._expanded_ids(pieces.values, pieces.row_splits)
        pieces = tf.RaggedTensor.from_row_splits(values, piece_splits, validate=False)
        return tf.RaggedTensor.from_row_splits(pieces, word_splits, validate=False)

    # === Characters ===

    def _with_thorough_rows(self, rows, characters, thorough):
        """Characters and row splits, those of the rows with a `thorough` character made anew."""
        places = tf.where(thorough)[:, 0]
        found = tf.searchsorted(rows.row_splits, places, side="right") - 1
        count = rows.nrows(out_type=tf.int32)
        is_found = tf.math.unsorted_segment_max(tf.ones_like(found), found, count) > 0  # [B]
        again = tf.ragged.boolean_mask(rows, is_found)
        normalized, splits = self._normalize(again.values, again.row_splits)
        again = tf.RaggedTensor.from_row_splits(self._classes(normalized), splits, validate=False)
        plain = tf.ragged.boolean_mask(rows.with_values(characters), ~is_found)
        rank = tf.cumsum(tf.cast(is_found, tf.int32), exclusive=True)
        place = tf.range(count) - rank
        place = tf.where(is_found, plain.nrows(out_type=tf.int32) + rank, place)
        merged = tf.gather(tf.concat([plain, again], axis=0), place)
        return merged.values, merged.row_splits

    def _normalize(self, characters, splits):
        """The steps of the Python tokenizer before words, on code points with row splits."""
        characters, splits = self._cleaned(characters, splits)
        if self._lower:
            characters = self._with_final_sigmas(characters)
            characters, splits = self._lowered(characters, splits)
        if self._form:
            # A later Unicode may have put a mark where ours has nothing: it stays where it is.
            hidden = self._hidden(characters)
            concealed = tf.boolean_mask(characters, hidden)
            shown = tf.where(hidden, PLACEHOLDER, characters)
            rows = tf.RaggedTensor.from_row_splits(shown, splits, validate=False)
            strings = tf.strings.unicode_encode(rows, "UTF-8")
            rows = tf.strings.unicode_decode(tf_text.normalize_utf8(strings, self._form), "UTF-8")
            characters, splits = rows.values, rows.row_splits
            places = tf.where(characters == PLACEHOLDER)
            characters = tf.tensor_scatter_nd_update(characters, places, concealed)
        if self._strip:
            characters, splits = self._stripped(characters, splits)
        return characters, splits

    def _with_final_sigmas(self, characters):
        """Lower-cases the capital sigmas that end a word, as `str.lower` does."""
        seen = tf.where(~self._ignored(characters))[:, 0]
        cased = tf.gather(self._cased(characters), seen)
        before = tf.concat([[False], cased[:-1]], axis=0)
        after = tf.concat([cased[1:], [False]], axis=0)
        final = (tf.gather(characters, seen) == SIGMA) & before & ~after
        places = tf.boolean_mask(seen, final)[:, tf.newaxis]
        sigmas = tf.fill(tf.shape(places)[:1], FINAL_SIGMA)
        return tf.tensor_scatter_nd_update(characters, places, sigmas)

    # === Words ===

    def _words(self, characters, row_splits):
        """Words as strings [W] of the alphabet's characters, their row splits [B + 1]."""
        space = (characters & SPACE) != 0
        alone = (characters & ALONE) != 0
        after_space = _shifted(space, 1, True)
        kept = ~space
        if self._runs:
            kept &= ~self._behind_run(characters)
        starts = kept & (after_space | alone | _shifted(alone, 1, False))
        if self._mark_eojeols:
            marks = space & ~after_space  # the first space after an eojeol becomes its marker
            if not self._mark_final:
                marks &= ~_last_of_rows(marks, row_splits)
            kept |= marks
        places = tf.where(kept)[:, 0]
        begins = tf.where(tf.gather(starts, places))[:, 0]
        word_splits = tf.searchsorted(tf.gather(places, begins), row_splits, out_type=tf.int64)
        spelled = self._known(tf.bitwise.bitwise_and(tf.gather(characters, places), CODE_POINT))
        spelled = tf.RaggedTensor.from_row_starts(spelled, begins, validate=False)
        words = tf.strings.unicode_encode(spelled, "UTF-8")
        lengths = spelled.row_lengths()
        if self._marker and not self._mark_eojeols:
            marked = tf.ones_like(lengths, tf.bool)
            if not self._mark_final:
                last = tf.boolean_mask(word_splits[1:], word_splits[1:] > word_splits[:-1]) - 1
                marked = tf.tensor_scatter_nd_update(
                    marked, last[:, tf.newaxis], tf.zeros_like(last, tf.bool)
                )
            words = tf.where(marked, words + self._spelled_marker(), words)
            lengths += tf.where(marked, tf.constant(len(self._marker), tf.int64), 0)
        if self._limited:
            words = tf.where(lengths > MAX_WORD_CHARACTERS, self._unknown, words)
        return words, word_splits

    def _spelled_marker(self):
        codes = self._known(tf.constant([ord(character) for character in self._marker]))
        return tf.strings.unicode_encode(codes, "UTF-8")

    def _behind_run(self, characters):
        """Where a repeatable character has as many of itself before it as are kept."""
        same = tf.concat([[False], characters[1:] == characters[:-1]], axis=0)[
            : tf.size(characters)
        ]
        # `reach` of the characters before are the same: doubled until it is what is asked for.
        all_same, reach = same, 1
        while reach < self._runs:
            step = min(reach, self._runs - reach)
            all_same &= _shifted(all_same, step, False)
            reach += step
        return all_same & ((characters & REPEATABLE) != 0)

    # === Ids ===

    def _expanded_ids(self, pieces, splits):
        """Ids of pieces, virtual ones replaced by what they stand for."""
        ids = tf.gather(self._ids, pieces)
        if self._more_ids is None:
            return ids, splits
        more = tf.gather(self._more_ids.row_lengths(), pieces)

        def expand():
            whole = tf.concat(
                [ids[:, tf.newaxis], tf.gather(self._more_ids, pieces)], axis=1
            )  # [P, (1 to 3)]
            return whole.values, tf.gather(whole.row_splits, splits)

        return tf.cond(tf.reduce_any(more > 0), expand, lambda: (ids, splits))


def _without_accent(character: str) -> str:
    return STRIP_ACCENTS[ord(character)]


def _shifted(values, steps: int, first: bool):
    """`values` moved to the right by `steps`, `first` before them."""
    return tf.concat([tf.fill([steps], first), values], axis=0)[: tf.size(values)]


def _last_of_rows(flags, row_splits):
    """The last True of each row of flags [C], if it has one."""
    places = tf.where(flags)[:, 0]
    row = tf.searchsorted(row_splits, places, side="right")
    last = tf.concat([row[1:] != row[:-1], [True]], axis=0)[: tf.size(row)]
    places = tf.boolean_mask(places, last)[:, tf.newaxis]
    return tf.scatter_nd(places, tf.ones_like(places[:, 0], tf.bool), tf.shape(flags, tf.int64))


def _two_unused_characters(vocab) -> tuple[str, str]:
    """What unknown characters become, what marks a continuation: nothing in the vocabulary."""
    first = unknown_character(vocab, UNKNOWN_WORD)
    return first, unknown_character([*vocab, first], UNKNOWN_WORD)


def _extended_vocabulary(tokenizer, unknown: str, prefix: str):
    """The strings of all pieces, real and virtual, each with the ids that it stands for.

    The first is what tensorflow-text gives for an unknown word; no text can spell it.
    """
    wordpiece, vocab, unk_id = tokenizer.wordpiece, tokenizer.vocab, tokenizer.unk_id
    entries, ids = [prefix + prefix], [[unk_id]]
    alphabet = {unknown}
    for known, mark in ((wordpiece.begin, ""), (wordpiece.inside, prefix)):
        for text, token in known.items():
            if any(character.isspace() or is_control(character) for character in text):
                continue  # no word has these
            if len(text.encode("utf-8")) > MAX_PIECE_BYTES:
                raise InputError(
                    f"A piece must have at most {MAX_PIECE_BYTES} bytes for the graph form. "
                    f"Received: {token[:20]!r}, {len(text.encode('utf-8'))} bytes"
                )
            alphabet.update(text)
            entries.append(mark + text)
            ids.append([vocab[token]])
    if wordpiece.jamo_fallback:
        alphabet.update(map(chr, range(0xAC00, 0xD7A4)))
    for character in sorted(alphabet):
        for known, mark in ((wordpiece.begin, ""), (wordpiece.inside, prefix)):
            if character in known:
                continue
            if wordpiece.jamo_fallback and is_syllable(character):
                first, *rest = jamo_of(character)
                tokens = [known[first], *(wordpiece.inside[jamo] for jamo in rest)]
                entries.append(mark + character)
                ids.append([vocab[token] for token in tokens])
            elif wordpiece.unknown == "character":
                entries.append(mark + character)
                ids.append([unk_id])
    return entries, ids


def _full_settings(tokenizer) -> dict:
    return {
        "clean": (False, False, ""),
        "form": "NFD" if tokenizer.do_lower_case else None,
        "strip": tokenizer.do_lower_case,
        "alone": (is_punctuation, is_chinese),
        "marker": "",
        "mark_eojeols": False,
        "mark_final": True,
        "shorten_runs": 0,
    }


def _korean_settings(tokenizer) -> dict:
    mark_eojeols = bool(tokenizer.word_end_marker) and tokenizer.word_end_marker_at == "eojeol"
    return {
        "clean": (
            tokenizer.fold_width,
            tokenizer.drop_invisible,
            tokenizer.word_end_marker if mark_eojeols else "",
        ),
        "form": tokenizer.normalization,
        "strip": False,
        "alone": [
            *[is_punctuation] * tokenizer.split_punctuation,
            *[is_chinese] * tokenizer.split_chinese_characters,
        ],
        "marker": tokenizer.word_end_marker,
        "mark_eojeols": mark_eojeols,
        "mark_final": tokenizer.mark_final_word,
        "shorten_runs": tokenizer.shorten_runs,
    }


# What each kind does with characters, in the graph's terms.
SETTINGS = {"full": _full_settings, "korean": _korean_settings}
