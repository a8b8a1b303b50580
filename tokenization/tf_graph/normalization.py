"""Normalizes and classifies characters in a TensorFlow graph.

Most rows take the fast path, one look-up per character. If any character of a row does not simply
become one other (it composes, is dropped, is a capital sigma), the row takes the slow path, which
follows the Python tokenizer step by step.

Shapes: B texts, C characters, S segments: runs of characters across whose borders none composes.
"""

import unicodedata

import numpy as np
import tensorflow as tf

from tokenization.characters import repeatable_characters, second_characters
from tokenization.options import KoreanTokenizerOptions
from tokenization.tf_graph import tables
from tokenization.tf_graph.rules import CharacterRules
from tokenization.tf_graph.tables import Replacements, Table
from tokenization.tf_graph.wordpiece import tf_text

# Class bits of a character, above the 21 bits of its code point.
SPACE, ISOLATED, REPEATABLE, SLOW = (1 << bit for bit in range(21, 25))
CODE_POINT = SPACE - 1

SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
PLACEHOLDER = 0xF8FF  # a private use character, which no normalization form changes


class GraphNormalizer(tf.Module):
    """Turns texts into normalized code points with class bits.

    Args:
        options: `KoreanTokenizerOptions`, whose normalization is not used.
        form: "NFC"; "NFD", which also drops accents; or None.
        rules: the rules for single characters.
    """

    def __init__(
        self, options: KoreanTokenizerOptions, form: str | None, rules: CharacterRules
    ) -> None:
        super().__init__(name="normalizer")
        self._form, self._lower, self._strip = form, options.do_lower_case, form == "NFD"
        self._rules = rules
        clean = tables.replacements(rules.clean, rules.further)
        self._cleaned = Replacements(clean)
        if self._lower:
            self._lowered = Replacements(tables.replacements(rules.lower, rules.further))
        if self._lower and rules.final_sigmas:
            self._cased, self._ignored = map(Table, tables.casing())
        if self._strip:
            self._stripped = Replacements(tables.replacements(rules.strip_accent))
        if self._form:
            self._hidden = Table(tables.unassigned() | tables.members(chr(PLACEHOLDER)))
            joins = tables.having(unicodedata.combining) | tables.members(second_characters())
            self._joins = Table(joins)
        classes = np.arange(tables.CODE_POINTS, dtype=np.int32)
        classes |= SPACE * tables.having(str.isspace)
        if options.split_punctuation:
            classes |= ISOLATED * tables.having(rules.is_punctuation)
        if options.split_chinese_characters:
            classes |= ISOLATED * tables.having(rules.is_chinese)
        if options.shorten_runs:
            classes |= REPEATABLE * tables.members(repeatable_characters())
        self._classes = Table(classes)
        self._fast = Table(self._fast_table(clean, classes))

    def __call__(
        self, texts: tf.Tensor, with_spans: bool = False
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor | None]:
        """Normalizes texts, string [B], UTF-8.

        Returns:
            The characters, int32 [C], code points with class bits; their row splits, int64 [B + 1];
            if `with_spans`, the first character and the end of each in the original text, int32
            [C, 2], as in `tokenization.offsets.AlignedText`, else None.
        """
        rows = tf.strings.unicode_decode(texts, "UTF-8")  # [B, (C)]
        spans = tables.places_in_texts(rows) if with_spans else None
        characters = self._fast(rows.values)  # [C]
        slow = (characters & SLOW) != 0
        return tf.cond(
            tf.reduce_any(slow),
            lambda: self._replace_slow_rows(rows, characters, slow, spans),
            lambda: (characters, rows.row_splits, spans),
        )

    def _fast_table(self, clean: tables.Arrays, classes: np.ndarray) -> np.ndarray:
        """Returns the result for each character on the fast path, or SLOW."""
        rules = self._rules
        steps = [clean]
        if self._lower:
            steps.append(tables.replacements(rules.lower, rules.further))
        if self._form == "NFD":
            steps.append(tables.replacements(tables.decomposing(rules.strip_accent)))
        character = np.arange(tables.CODE_POINTS, dtype=np.int32)
        slow = character == tables.REPLACEMENT
        if self._lower and rules.final_sigmas:
            slow |= character == SIGMA
        stages = [character]
        for step in steps:
            one, is_one = tables.single(step)
            slow |= ~is_one[character]
            character = one[character]
            stages.append(character)
        if self._form == "NFC":
            for stage in stages:
                slow |= tables.may_normalize()[stage]
        elif self._form == "NFD":
            # Accents are dropped; other marks would have to be reordered.
            slow |= tables.having(unicodedata.combining)[character]
        return np.where(slow, SLOW, classes[character]).astype(np.int32)

    def _replace_slow_rows(self, rows, characters, slow, spans):
        """Normalizes the rows with a slow character again; returns the same as `__call__`."""
        places = tf.where(slow)[:, 0]
        numbers = tf.searchsorted(rows.row_splits, places, side="right") - 1
        count = rows.nrows(out_type=tf.int32)
        is_slow = tf.math.unsorted_segment_max(tf.ones_like(numbers), numbers, count) > 0  # [B]
        again = tf.ragged.boolean_mask(rows, is_slow)
        if spans is not None:
            fast_spans = tf.ragged.boolean_mask(rows.with_values(spans), ~is_slow)
            spans = tf.ragged.boolean_mask(rows.with_values(spans), is_slow).values
        normalized, splits, spans = self._normalize(again.values, again.row_splits, spans)
        again = tf.RaggedTensor.from_row_splits(self._classes(normalized), splits, validate=False)
        fast = tf.ragged.boolean_mask(rows.with_values(characters), ~is_slow)
        rank = tf.cumsum(tf.cast(is_slow, tf.int32), exclusive=True)
        place = tf.range(count) - rank
        place = tf.where(is_slow, fast.nrows(out_type=tf.int32) + rank, place)
        merged = tf.gather(tf.concat([fast, again], axis=0), place)  # [B, (C)]
        if spans is not None:
            both = tf.concat([fast_spans, again.with_values(spans)], axis=0)
            spans = tf.gather(both, place).values
        return merged.values, merged.row_splits, spans

    def _normalize(self, characters, splits, spans):
        """Normalizes code points [C] with row splits [B + 1] as the Python tokenizer does.

        Returns the new characters, row splits and spans; the spans [C, 2] may be None.
        """

        def replace(replacements, characters, splits, spans):
            characters, splits, source = replacements(characters, splits)
            return characters, splits, None if spans is None else tf.gather(spans, source)

        characters, splits, spans = replace(self._cleaned, characters, splits, spans)
        if self._lower:
            if self._rules.final_sigmas:
                characters = with_final_sigmas(characters, self._cased, self._ignored)
            characters, splits, spans = replace(self._lowered, characters, splits, spans)
        if self._form and spans is not None:
            characters, splits, spans = self._compose_segments(characters, splits, spans)
        elif self._form:
            strings = self._composed(self._encoded(characters, splits))  # [B]
            characters, splits = self._decoded(strings, characters)
        if self._strip:
            characters, splits, spans = replace(self._stripped, characters, splits, spans)
        return characters, splits, spans

    def _compose_segments(self, characters, splits, spans):
        """Normalizes by segments, as `AlignedText.normalize` does; returns what `_normalize` does.

        If the rest of a segment does not change its first character, that one keeps its span, and
        the rest keep theirs if they stay the same or else share one. Otherwise all share one.
        """
        count = tf.size(characters, tf.int64)
        starts_row = tf.scatter_nd(
            splits[:, tf.newaxis], tf.ones_like(splits, tf.int32), count[tf.newaxis] + 1
        )[:-1]
        begins = tf.where((starts_row > 0) | ~self._joins(characters))[:, 0]  # [S]
        ends = tf.concat([begins[1:], count[tf.newaxis]], axis=0)  # [S]
        segment_splits = tf.searchsorted(begins, splits, out_type=tf.int64)  # [B + 1]
        borders = tf.concat([begins, count[tf.newaxis]], axis=0)  # [S + 1]
        strings = self._encoded(characters, borders)  # [S]
        firsts = self._encoded(tf.gather(characters, begins), tf.range(tf.size(begins) + 1))
        others = tf.strings.substr(strings, tf.strings.length(firsts), tf.strings.length(strings))
        firsts, rest = self._composed(firsts), self._composed(others)  # [S] each
        whole = self._composed(strings)  # [S]
        separate = whole == tf.strings.join([firsts, rest])  # [S]
        kept = rest == others  # [S]
        composed, segment_ends = self._decoded(whole, characters)  # [C], [S + 1]
        sizes = segment_ends[1:] - segment_ends[:-1]
        owner = tf.repeat(tf.range(tf.size(begins)), sizes)  # [C]
        within = tf.range(tf.size(composed, tf.int64)) - tf.gather(segment_ends, owner)
        begins, ends, separate, kept, sizes = (
            tf.gather(values, owner)
            for values in (
                begins, ends, separate, kept, tf.strings.length(firsts, "UTF8_CHAR"),
            )
        )  # [C] each  # fmt: skip
        after = within - tf.cast(sizes, tf.int64)  # below 0 for the first character
        own = begins + 1 + after
        first = tf.where(after < 0, begins, tf.where(kept, own, tf.minimum(begins + 1, ends - 1)))
        last = tf.where(after < 0, begins, tf.where(kept, own, ends - 1))
        first, last = tf.where(separate, first, begins), tf.where(separate, last, ends - 1)
        spans = tf.stack([tf.gather(spans[:, 0], first), tf.gather(spans[:, 1], last)], axis=1)
        return composed, tf.gather(segment_ends, segment_splits), spans

    def _encoded(self, characters, splits):
        """Returns code points as strings [B], with placeholders for any that ICU must not touch."""
        # ICU's Unicode may be newer and know marks that are unassigned in Python's.
        shown = tf.where(self._hidden(characters), PLACEHOLDER, characters)
        rows = tf.RaggedTensor.from_row_splits(shown, splits, validate=False)  # [B, (C)]
        return tf.strings.unicode_encode(rows, "UTF-8")

    def _composed(self, strings):
        return tf_text.normalize_utf8(strings, self._form)

    def _decoded(self, strings, original):
        """Returns the code points of normalized strings [B] and their row splits [B + 1].

        Placeholders, which stay in order, become the hidden ones of the `original` code points.
        """
        rows = tf.strings.unicode_decode(strings, "UTF-8")  # [B, (C)]
        concealed = tf.boolean_mask(original, self._hidden(original))
        places = tf.where(rows.values == PLACEHOLDER)
        characters = tf.tensor_scatter_nd_update(rows.values, places, concealed)
        return characters, rows.row_splits


def with_final_sigmas(characters: tf.Tensor, cased: Table, ignored: Table) -> tf.Tensor:
    """Lower-cases the capital sigmas at the end of words of code points [C], as `str.lower` does.

    `cased` and `ignored` are the tables of the arrays from `tables.casing`.
    """
    visible = tf.where(~ignored(characters))[:, 0]
    is_cased = tf.gather(cased(characters), visible)
    before = tables.shift(is_cased, 1, False)
    after = tf.concat([is_cased[1:], [False]], axis=0)
    final = (tf.gather(characters, visible) == SIGMA) & before & ~after
    places = tf.boolean_mask(visible, final)[:, tf.newaxis]
    sigmas = tf.fill(tf.shape(places)[:1], FINAL_SIGMA)
    return tf.tensor_scatter_nd_update(characters, places, sigmas)
