"""WordPiece tokenization that keeps Hangul whole."""

import functools
import os
import unicodedata
import warnings

from bert_common.errors import InputError
from tokenization.base import TokenizerInterface, check_switches
from tokenization.characters import FINALS, INITIALS, VOWELS, is_syllable
from tokenization.decoding import (
    UNKNOWN_CHINESE,
    UNKNOWN_PUNCTUATION,
    UNKNOWN_TOKEN,
    unknown_character,
    words_by_marker,
    words_by_prefix,
)
from tokenization.normalization import SPACE_ALONE, cuts_of_runs, korean_cleaner, without
from tokenization.offsets import Aligned
from tokenization.vocabulary import (
    count_hangul_entries,
    load_strict_vocabulary,
    load_vocabulary,
)
from tokenization.wordpiece import WordPiece


class KoreanTokenizer(TokenizerInterface):
    """Cleans, composes, splits, then applies WordPiece; never decomposes, strips no accents.

    NFC makes decomposed files (macOS) equal to composed ones. It leaves chat jamo such as ㅋㅋ
    or ㅠㅠ alone, which NFKC would merge into syllables. Control characters, those of zero width
    among them, are dropped, a lone surrogate too. Every switch works without the others, unless
    it says what it needs.

    Args:
        vocab_file: one token a line.
        do_lower_case: lower-case Latin and other cased scripts.
        normalization: "NFC", or None to take the text as it is.
        continuation_prefix: marks a piece that does not begin its word; "" for none.
        word_end_marker: appended to each word before WordPiece, such as "_"; "" for none.
        word_end_marker_at: "word" marks every word; "eojeol" only those that whitespace follows,
            so that the pieces tell all spaces. That needs unknown="character". The marker in a
            text is then read as a space.
        mark_final_word: False leaves the text's last word without `word_end_marker`.
        split_punctuation: make each punctuation mark a word of its own; False also lets a text
            that says "[MASK]" produce that special token.
        split_chinese_characters: make each Hanja a word of its own.
        unknown: "word" gives one [UNK] for a word of which any part has no piece, or that is
            longer than 200 characters, as google-research/bert does. "character" gives it for
            the character at which no piece begins, once greedy longest match gets there, and
            goes on after that; a word may have any length. With a `word_end_marker`, that must be
            one character, which the vocabulary holds by itself as a continuation.
        jamo_fallback: a syllable at which no piece begins becomes its two or three conjoining
            jamo, initial, vowel, final, each a piece. Finals have code points of their own, so
            composing (NFC) brings back just the syllables that there were. The vocabulary must
            hold all of these jamo; needs normalization "NFC".
        fold_width: full-width forms become the usual ones ("Ａ" to "A", "￦" to "₩"); compatibility
            jamo and half-width forms stay.
        drop_invisible: drop what shows nothing without being a control character: Hangul fillers,
            variation selectors.
        shorten_runs: how many of a longer run of the same compatibility jamo, symbol (emoji,
            hearts, stars) or "^" are kept; 0 keeps all.
        strict_vocabulary: refuse a vocabulary with blank or repeated lines, or without a special
            token. False reads it as google-research/bert does, and gives the id of [UNK] to
            tokens outside the vocabulary.

    Raises:
        InputError: a switch has a wrong value, or not what it needs; the vocabulary cannot be
            read, or is refused.

    Source: the word-end-marker form follows ilhoonkim/BertTokenizer tokenization_kor.py.
    """

    kind = "korean"
    switches = {
        "do_lower_case": (True, False),
        "normalization": ("NFC", None),
        "continuation_prefix": str,
        "word_end_marker": str,
        "word_end_marker_at": ("word", "eojeol"),
        "mark_final_word": (True, False),
        "split_punctuation": (True, False),
        "split_chinese_characters": (True, False),
        "unknown": ("word", "character"),
        "jamo_fallback": (True, False),
        "fold_width": (True, False),
        "drop_invisible": (True, False),
        "shorten_runs": int,
        "strict_vocabulary": (True, False),
    }

    def __init__(
        self,
        vocab_file: str | os.PathLike,
        *,
        do_lower_case: bool = False,
        normalization: str | None = "NFC",
        continuation_prefix: str = "##",
        word_end_marker: str = "",
        word_end_marker_at: str = "word",
        mark_final_word: bool = True,
        split_punctuation: bool = True,
        split_chinese_characters: bool = True,
        unknown: str = "word",
        jamo_fallback: bool = False,
        fold_width: bool = False,
        drop_invisible: bool = False,
        shorten_runs: int = 0,
        strict_vocabulary: bool = True,
    ):
        self.do_lower_case = do_lower_case
        self.normalization = normalization
        self.continuation_prefix = continuation_prefix
        self.word_end_marker = word_end_marker
        self.word_end_marker_at = word_end_marker_at
        self.mark_final_word = mark_final_word
        self.split_punctuation = split_punctuation
        self.split_chinese_characters = split_chinese_characters
        self.unknown = unknown
        self.jamo_fallback = jamo_fallback
        self.fold_width = fold_width
        self.drop_invisible = drop_invisible
        self.shorten_runs = shorten_runs
        self.strict_vocabulary = strict_vocabulary
        check_switches(self._switches(), self.switches, "KoreanTokenizer")
        load = load_strict_vocabulary if strict_vocabulary else load_vocabulary
        vocab, vocabulary_bytes = load(vocab_file)
        unknown_id = None if strict_vocabulary else vocab.get(UNKNOWN_TOKEN)
        self._use_vocabulary(vocab, vocabulary_bytes, unknown_becomes_id=unknown_id)
        self.wordpiece = WordPiece(vocab, continuation_prefix, unknown, jamo_fallback)
        self._check_needs(os.fspath(vocab_file))
        at_eojeol = word_end_marker_at == "eojeol"
        self._cleaner = korean_cleaner(
            fold_width, drop_invisible, word_end_marker if at_eojeol else ""
        )
        self._space_alone = SPACE_ALONE[split_punctuation, split_chinese_characters]
        syllables, jamo = count_hangul_entries(vocab)
        # The opposite trap: a sub-character vocabulary needs NFD.
        if 10 * syllables < jamo and not jamo_fallback:
            warnings.warn(
                f"{os.fspath(vocab_file)} holds {jamo} tokens with conjoining jamo, {syllables} "
                "with Hangul syllables: it was made for decomposed text, so nearly all Korean "
                "will become [UNK]. Use FullTokenizer (--tokenizer=full) with do_lower_case=True",
                stacklevel=2,
            )

    def basic_tokens(self, text: str) -> list[str]:
        """Returns the words before markers, before WordPiece."""
        text = self.normalize(text)
        if self._space_alone is not None:
            text = text.translate(self._space_alone)
        return text.split()

    def normalize(self, text: str) -> str:
        """Returns the text that is split into words, all of its whitespace still there."""
        text = text.translate(self._cleaner)
        if self.do_lower_case:
            text = text.lower()
        # Last: dropping a character may bring together what composes, lower-casing as well.
        if self.normalization:
            text = unicodedata.normalize(self.normalization, text)
        if self.shorten_runs:
            cuts = cuts_of_runs(text, self.shorten_runs)
            if cuts:
                text = "".join(without(text, cuts))
        return text

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into pieces, grouped by basic token."""
        if self.word_end_marker and self.word_end_marker_at == "eojeol":
            words = self._words_marked_at_eojeol_ends(text)
        else:
            words = self.basic_tokens(text)
            if self.word_end_marker:
                marked = len(words) if self.mark_final_word else len(words) - 1
                words[:marked] = [word + self.word_end_marker for word in words[:marked]]
        pieces = self.wordpiece.pieces
        return [list(pieces(word)) for word in words]

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Cuts a text into pieces, says where each of them stands in it.

        Args:
            text: any string.

        Returns:
            The ids, as `encode` gives them, then for each the first character and the one after
            the last, in `text` itself, whatever normalisation did. An [UNK] has the characters
            that are unknown, each jamo of a syllable that syllable; a piece that is nothing but
            the marker has an empty span, after its word.
        """
        aligned = Aligned(text).translate(self._cleaner)
        if self.do_lower_case:
            aligned = aligned.lower()
        if self.normalization:
            aligned = aligned.normalize(self.normalization)
        if self.shorten_runs:
            aligned = aligned.shorten_runs(self.shorten_runs)
        words = []
        for eojeol in aligned.split():
            if self._space_alone is not None:
                eojeol = eojeol.translate(self._space_alone)
            words.append(eojeol.split())
        if self.word_end_marker:
            if self.word_end_marker_at == "word":
                words = [[word] for eojeol in words for word in eojeol]
            for eojeol in words if self.mark_final_word else words[:-1]:
                eojeol[-1] = eojeol[-1].with_end(self.word_end_marker)
        return self._ids_and_spans([word for eojeol in words for word in eojeol])

    def decode(self, ids) -> str:
        """Returns a text that `encode` turns into the same ids, if a text gave these.

        Where the word-end marker is at eojeol ends that is the normalised text itself: whitespace
        is one space, none at the ends, and what was unknown is written as one character that the
        vocabulary lacks (`written_unknown`). Otherwise words are separated by a space,
        punctuation too; without prefix and marker, pieces are.
        """
        tokens = self.convert_ids_to_tokens(ids)
        prefix, marker = self.continuation_prefix, self.word_end_marker
        if marker and self.word_end_marker_at == "eojeol":
            text = self._join_eojeols(tokens)
        elif marker and not prefix:
            text = " ".join(words_by_marker(self, tokens, marker, self.mark_final_word))
        elif marker:
            words = words_by_prefix(self.wordpiece, self.written_unknown, tokens, marker)
            marked = len(words) if self.mark_final_word else len(words) - 1
            words[:marked] = [word.removesuffix(marker) for word in words[:marked]]
            text = " ".join(words)
        elif prefix:
            text = " ".join(words_by_prefix(self.wordpiece, self.written_unknown, tokens))
        else:
            text = self._separate_pieces(tokens)
        return unicodedata.normalize("NFC", text) if self.normalization else text

    def config(self) -> dict:
        """Returns what `load_tokenizer` needs beside the vocabulary."""
        return {"kind": self.kind, **self._switches()}

    def _switches(self) -> dict:
        return {name: getattr(self, name) for name in self.switches}

    def _check_needs(self, path: str) -> None:
        """Raises InputError where switches contradict each other or the vocabulary."""
        marker, inside = self.word_end_marker, self.wordpiece.inside
        if self.word_end_marker_at == "eojeol" and not (marker and self.unknown == "character"):
            raise InputError(
                'KoreanTokenizer: word_end_marker_at "eojeol" must come with a word_end_marker and '
                f'unknown "character". Received: {marker!r}, {self.unknown!r}'
            )
        if marker and self.unknown == "character":
            if len(marker) != 1 or unicodedata.category(marker)[0] not in "PS":
                raise InputError(
                    'KoreanTokenizer: with unknown "character", word_end_marker must be one '
                    f"punctuation mark or symbol. Received: {marker!r}"
                )
            if unicodedata.decomposition(marker):
                raise InputError(
                    "KoreanTokenizer: word_end_marker must be a character that does not "
                    f"decompose. Received: {marker!r}"
                )
            if marker not in inside:
                raise InputError(
                    f"{path} must hold the word-end marker by itself. Received: no "
                    f"{self.continuation_prefix + marker!r}"
                )
        if self.jamo_fallback:
            if self.normalization != "NFC":
                raise InputError(
                    'KoreanTokenizer: jamo_fallback must come with normalization "NFC". '
                    f"Received: {self.normalization!r}"
                )
            missing = [jamo for jamo in INITIALS if jamo not in self.wordpiece.begin]
            missing += [
                self.continuation_prefix + jamo
                for jamo in INITIALS + VOWELS + FINALS
                if jamo not in inside
            ]
            if missing:
                raise InputError(
                    f"{path} must hold all conjoining jamo for jamo_fallback. Received: "
                    f"{len(missing)} missing, such as {missing[0]!r}"
                )

    def _words_marked_at_eojeol_ends(self, text: str) -> list[str]:
        eojeols = self.normalize(text).split()
        marked = len(eojeols) if self.mark_final_word else len(eojeols) - 1
        if self._space_alone is None:
            return [e + self.word_end_marker for e in eojeols[:marked]] + eojeols[marked:]
        words = []
        for number, eojeol in enumerate(eojeols):
            words += eojeol.translate(self._space_alone).split()
            if number < marked:
                words[-1] += self.word_end_marker
        return words

    def _separate_pieces(self, tokens: list[str]) -> str:
        """Puts a space between pieces, none between the jamo of one syllable."""
        words, index = [], 0
        while index < len(tokens):
            for length in (3, 2) if self.jamo_fallback and tokens[index] in INITIALS else ():
                syllable = unicodedata.normalize("NFC", "".join(tokens[index : index + length]))
                # The jamo are one syllable only if that would be taken apart again.
                one = len(syllable) == 1 and is_syllable(syllable)
                if one and syllable not in self.wordpiece.begin:
                    words.append(syllable)
                    break
            else:
                token, length = tokens[index], 1
                words.append(self.written_unknown if token == UNKNOWN_TOKEN else token)
            index += length
        return " ".join(words)

    def _join_eojeols(self, tokens: list[str]) -> str:
        """Puts a space where a marker is, nothing anywhere else."""
        prefix, parts, next_begins = self.continuation_prefix, [], False
        for token in reversed(tokens):
            continues = prefix and token != prefix and token.startswith(prefix)
            if token == UNKNOWN_TOKEN:
                # A word that begins after it says that it was a word of its own.
                parts.append(self._unknown_alone if next_begins else self.written_unknown)
                next_begins = False
            else:
                parts.append(token[len(prefix) :] if continues else token)
                next_begins = bool(prefix) and not continues
        return "".join(reversed(parts)).replace(self.word_end_marker, " ").rstrip(" ")

    @functools.cached_property
    def _unknown_alone(self) -> str:
        """What `decode` writes for an unknown character that is set apart from its neighbours."""
        return unknown_character(
            self.vocab, UNKNOWN_PUNCTUATION if self.split_punctuation else UNKNOWN_CHINESE
        )
