"""Normalizes and classifies characters in a TensorFlow graph.

Most rows take the fast path, one look-up for each character. A row in which any character does not
simply become one other (it composes, is dropped, is a capital sigma) takes the slow path, which
follows the Python tokenizer step by step.

Shapes: B texts, C characters.
"""

import unicodedata

import numpy as np
import tensorflow as tf

from tokenization.characters import repeatable_characters
from tokenization.tf_graph import tables
from tokenization.tf_graph.rules import CharacterRules
from tokenization.tf_graph.tables import Replacements, Table
from tokenization.tf_graph.wordpiece import tf_text

# Class bits of a character, above the 21 bits of its code point.
SPACE, ISOLATED, REPEATABLE, SLOW = (1 << bit for bit in range(21, 25))
CODE_POINT = SPACE - 1

SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2
PLACEHOLDER = 0xF8FF  # of private use: no form of normalization changes it


class GraphNormalizer(tf.Module):
    """Turns texts into normalized code points with class bits.

    Args:
        options: `KoreanTokenizerOptions`, apart from the normalization.
        form: "NFC"; "NFD", then accents are dropped; or None.
        rules: what happens to single characters.
    """

    def __init__(self, options, form, rules: CharacterRules):
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

    def __call__(self, texts):
        """Normalizes texts, string [B], UTF-8.

        Returns:
            The characters, int32 [C], code points with class bits; their row splits, int64 [B + 1].
        """
        rows = tf.strings.unicode_decode(texts, "UTF-8")  # [B, (C)]
        characters = self._fast(rows.values)  # [C]
        slow = (characters & SLOW) != 0
        return tf.cond(
            tf.reduce_any(slow),
            lambda: self._replace_slow_rows(rows, characters, slow),
            lambda: (characters, rows.row_splits),
        )

    def _fast_table(self, clean, classes) -> np.ndarray:
        """The result for each character on the fast path, or SLOW."""
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

    def _replace_slow_rows(self, rows, characters, slow):
        """Normalizes the rows with a slow character again; returns all characters, row splits."""
        places = tf.where(slow)[:, 0]
        numbers = tf.searchsorted(rows.row_splits, places, side="right") - 1
        count = rows.nrows(out_type=tf.int32)
        is_slow = tf.math.unsorted_segment_max(tf.ones_like(numbers), numbers, count) > 0  # [B]
        again = tf.ragged.boolean_mask(rows, is_slow)
        normalized, splits = self._normalize(again.values, again.row_splits)
        again = tf.RaggedTensor.from_row_splits(self._classes(normalized), splits, validate=False)
        fast = tf.ragged.boolean_mask(rows.with_values(characters), ~is_slow)
        rank = tf.cumsum(tf.cast(is_slow, tf.int32), exclusive=True)
        place = tf.range(count) - rank
        place = tf.where(is_slow, fast.nrows(out_type=tf.int32) + rank, place)
        merged = tf.gather(tf.concat([fast, again], axis=0), place)  # [B, (C)]
        return merged.values, merged.row_splits

    def _normalize(self, characters, splits):
        """Follows the Python tokenizer up to words, on code points [C] with row splits [B + 1]."""
        characters, splits = self._cleaned(characters, splits)
        if self._lower:
            if self._rules.final_sigmas:
                characters = self._with_final_sigmas(characters)
            characters, splits = self._lowered(characters, splits)
        if self._form:
            # ICU's Unicode may be newer and know marks that are unassigned in Python's: such
            # characters are hidden from it, and stay where they are.
            hidden = self._hidden(characters)
            concealed = tf.boolean_mask(characters, hidden)
            shown = tf.where(hidden, PLACEHOLDER, characters)
            rows = tf.RaggedTensor.from_row_splits(shown, splits, validate=False)  # [B, (C)]
            strings = tf.strings.unicode_encode(rows, "UTF-8")  # [B]
            strings = tf_text.normalize_utf8(strings, self._form)
            rows = tf.strings.unicode_decode(strings, "UTF-8")  # [B, (C)]
            characters, splits = rows.values, rows.row_splits
            places = tf.where(characters == PLACEHOLDER)
            characters = tf.tensor_scatter_nd_update(characters, places, concealed)
        if self._strip:
            characters, splits = self._stripped(characters, splits)
        return characters, splits

    def _with_final_sigmas(self, characters):
        """Lower-cases capital sigmas at the end of a word, as `str.lower` does."""
        visible = tf.where(~self._ignored(characters))[:, 0]
        cased = tf.gather(self._cased(characters), visible)
        before = tf.concat([[False], cased[:-1]], axis=0)
        after = tf.concat([cased[1:], [False]], axis=0)
        final = (tf.gather(characters, visible) == SIGMA) & before & ~after
        places = tf.boolean_mask(visible, final)[:, tf.newaxis]
        sigmas = tf.fill(tf.shape(places)[:1], FINAL_SIGMA)
        return tf.tensor_scatter_nd_update(characters, places, sigmas)
