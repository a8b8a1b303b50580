"""Implements WordPiece tokenization that keeps Hangul syllables whole."""

import functools
import os
import unicodedata
import warnings
from collections.abc import Iterable
from typing import Any

from bert_common.errors import InputError
from tokenization.base import EncodedPart, TokenizerInterface
from tokenization.byte_pieces import byte_vocabulary
from tokenization.characters import FINALS, INITIALS, VOWELS, is_syllable
from tokenization.decoding import (
    UNKNOWN_CHINESE,
    UNKNOWN_PUNCTUATION,
    UNKNOWN_TOKEN,
    unknown_character,
    words_by_marker,
    words_by_prefix,
)
from tokenization.normalization import ISOLATING, korean_cleaner
from tokenization.offsets import AlignedText, AnyText, normalize, shorten_runs
from tokenization.options import KoreanTokenizerOptions
from tokenization.vocabulary import count_hangul_entries, load_strict_vocabulary, load_vocabulary
from tokenization.wordpiece import WordPiece


class KoreanTokenizer(TokenizerInterface):
    """Cleans, composes and splits text for WordPiece; never decomposes it or strips accents.

    NFC makes decomposed text (macOS) equal to composed text. It leaves chat jamo such as ㅋㅋ
    or ㅠㅠ alone, and so does the option "NFKC" here; Unicode's NFKC would merge them into
    syllables. Control characters, also zero-width ones, and lone surrogates are dropped.

    Args:
        vocab_file: one token a line.
        **options: the fields of `KoreanTokenizerOptions`.

    Raises:
        InputError: an option is invalid or needs tokens that the vocabulary lacks, or the
            vocabulary cannot be read or is invalid.
        TypeError: an option is unknown.

    Source: the word-end-marker form follows ilhoonkim/BertTokenizer tokenization_kor.py.
    """

    kind = "korean"
    options_type = KoreanTokenizerOptions
    options: KoreanTokenizerOptions

    def __init__(self, vocab_file: str | os.PathLike[str], **options: Any) -> None:
        self.options = options = KoreanTokenizerOptions(**options)
        load = load_strict_vocabulary if options.strict_vocabulary else load_vocabulary
        vocab, vocabulary_bytes = load(vocab_file)
        unknown_id = None if options.strict_vocabulary else vocab.get(UNKNOWN_TOKEN)
        self._use_vocabulary(vocab, vocabulary_bytes, unknown_becomes_id=unknown_id)
        self.wordpiece = WordPiece(
            vocab, options.continuation_prefix, options.unknown, options.jamo_fallback
        )
        self._check_vocabulary(os.fspath(vocab_file))
        self._cleaner = korean_cleaner(options.cleaning)
        self._isolating = ISOLATING[options.split_punctuation, options.split_chinese_characters]
        syllables, jamo = count_hangul_entries(vocab)
        # The opposite of FullTokenizer's check: a vocabulary of jamo needs NFD.
        if 10 * syllables < jamo and not options.jamo_fallback:
            warnings.warn(
                f"{os.fspath(vocab_file)} holds {jamo} tokens with conjoining jamo, {syllables} "
                "with Hangul syllables: it was made for decomposed text, so nearly all Korean "
                "will become [UNK]. Use FullTokenizer (--tokenizer=full) with do_lower_case=True",
                stacklevel=2,
            )

    def basic_tokens(self, text: str) -> list[str]:
        """Splits a text into words, without word-end markers."""
        text = self._normalize(text)
        if self._isolating is not None:
            text = text.translate(self._isolating)
        return text.split()

    def normalize(self, text: str) -> str:
        """Returns the normalized text before it is split into words, with all its whitespace."""
        return self._normalize(text)

    def _normalize(self, text: AnyText) -> AnyText:
        options, form = self.options, self.options.composition
        text = text.translate(self._cleaner)
        if options.do_lower_case:
            text = text.lower()
        # After these steps, because dropping or lower-casing may make neighbours compose.
        if form:
            text = normalize(form, text)
        if options.shorten_runs:
            text = shorten_runs(text, options.shorten_runs)
        return text

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into tokens, grouped by word."""
        marker = self.options.word_end_marker
        if self.options.marks_eojeols:
            words = self._words_marked_at_eojeol_ends(text)
        else:
            words = self.basic_tokens(text)
            if marker:
                marked = self._count_marked(words)
                words[:marked] = [word + marker for word in words[:marked]]
        pieces = self.wordpiece.pieces
        return [list(pieces(word)) for word in words]

    def encode_part(
        self, text: str, follows_mask: bool = False, precedes_mask: bool = False
    ) -> EncodedPart:
        """Encodes a part of a text, as `TokenizerInterface.encode_part` describes.

        An [UNK] has the span of the unknown characters, a jamo the span of its syllable, a byte the
        span of its character; a token that is only the marker has an empty span after its word.
        """
        options = self.options
        aligned = self._normalize(AlignedText(text))
        raw, words = aligned.edges(), []
        first, last = (" " if self._isolates(character) else character for character in raw)
        for eojeol in aligned.split():
            if self._isolating is not None:
                eojeol = eojeol.translate(self._isolating)
            words.append(eojeol.split())
        if options.word_end_marker:
            if not options.marks_eojeols:
                words = [[word] for eojeol in words for word in eojeol]
            marked = self._count_marked(words)
            if precedes_mask:  # the last word is not the text's last; the mask may continue it
                marked = len(words) - ((raw[1] if options.marks_eojeols else last) != " ")
            for number, eojeol in enumerate(words[:marked], 1):
                following = words[number][0].spans[0][0] if number < len(words) else None
                eojeol[-1] = eojeol[-1].with_end(options.word_end_marker, following)
        continues = follows_mask and first not in ("", " ")
        words = [word for eojeol in words for word in eojeol]
        return EncodedPart(*self._cut_words(words, continues), (first, last))

    def decode(self, ids: Iterable[int]) -> str:
        """Returns a text that `encode` turns into the same ids, if any text does.

        With word-end markers at eojeol ends, this is the normalized text itself, with whitespace
        as single spaces, none at the ends, and an [UNK] as one character that the vocabulary lacks
        (`written_unknown`). Otherwise spaces separate words, including punctuation marks; without
        prefix and marker, they separate tokens. With unknown "bytes", nothing else is lost: the
        words are exactly the text's own.
        """
        tokens = self.wordpiece.join_bytes(self.convert_ids_to_tokens(ids))
        options = self.options
        prefix, marker = options.continuation_prefix, options.word_end_marker
        if options.marks_eojeols:
            text = self._join_eojeols(tokens)
        elif marker and not prefix:
            text = " ".join(words_by_marker(self, tokens))
        elif marker:
            words = words_by_prefix(self.wordpiece, self.written_unknown, tokens, marker)
            marked = self._count_marked(words)
            words[:marked] = [word.removesuffix(marker) for word in words[:marked]]
            text = " ".join(words)
        elif prefix:
            text = " ".join(words_by_prefix(self.wordpiece, self.written_unknown, tokens))
        else:
            text = self._separate_pieces(tokens)
        return unicodedata.normalize("NFC", text) if options.normalization else text

    def _count_marked(self, words: list[Any]) -> int:
        """Returns how many of the words, counted from the first, end with the marker."""
        return len(words) if self.options.mark_final_word else max(0, len(words) - 1)

    def _isolates(self, character: str) -> bool:
        """Returns True if a character is always a word: by default punctuation and Hanja."""
        isolating = self._isolating
        return isolating is not None and character.translate(isolating) != character

    def _check_vocabulary(self, path: str) -> None:
        """Raises InputError if the vocabulary lacks tokens that the options need."""
        options, inside = self.options, self.wordpiece.inside
        prefix, marker = options.continuation_prefix, options.word_end_marker
        if marker and options.unknown != "word" and marker not in inside:
            raise InputError(
                f"{path} must hold the word-end marker by itself. Received: no {prefix + marker!r}"
            )
        if options.unknown == "bytes":
            missing = [piece for piece in byte_vocabulary(prefix) if piece not in self.vocab]
            if missing:
                raise InputError(
                    f'{path} must hold the tokens of all bytes for unknown "bytes". Received: '
                    f"{len(missing)} missing, such as {missing[0]!r}"
                )
        if options.jamo_fallback:
            missing = [jamo for jamo in INITIALS if jamo not in self.wordpiece.begin]
            missing += [prefix + jamo for jamo in INITIALS + VOWELS + FINALS if jamo not in inside]
            if missing:
                raise InputError(
                    f"{path} must hold all conjoining jamo for jamo_fallback. Received: "
                    f"{len(missing)} missing, such as {missing[0]!r}"
                )

    def _words_marked_at_eojeol_ends(self, text: str) -> list[str]:
        eojeols, marker = self._normalize(text).split(), self.options.word_end_marker
        words, marked, isolating = [], self._count_marked(eojeols), self._isolating
        for number, eojeol in enumerate(eojeols):
            words += [eojeol] if isolating is None else eojeol.translate(isolating).split()
            if number < marked:
                words[-1] += marker
        return words

    def _separate_pieces(self, tokens: list[str]) -> str:
        """Joins tokens with spaces, except for the jamo of one syllable."""
        fallback, words, index = self.options.jamo_fallback, [], 0
        while index < len(tokens):
            for length in (3, 2) if fallback and tokens[index] in INITIALS else ():
                syllable = unicodedata.normalize("NFC", "".join(tokens[index : index + length]))
                # The jamo are of one syllable only if `encode` would decompose it again.
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
        """Joins tokens without spaces, and replaces each marker by a space."""
        prefix, parts, next_begins = self.options.continuation_prefix, [], False
        for token in reversed(tokens):
            continues = prefix and token != prefix and token.startswith(prefix)
            if token == UNKNOWN_TOKEN:
                # If a word begins after the [UNK], it was a separate word.
                parts.append(self._unknown_word if next_begins else self.written_unknown)
                next_begins = False
            else:
                parts.append(token[len(prefix) :] if continues else token)
                next_begins = bool(prefix) and not continues
        return "".join(reversed(parts)).replace(self.options.word_end_marker, " ").rstrip(" ")

    @functools.cached_property
    def _unknown_word(self) -> str:
        """The character that `decode` writes for an unknown character that was a separate word."""
        candidates = UNKNOWN_PUNCTUATION if self.options.split_punctuation else UNKNOWN_CHINESE
        return unknown_character(self.vocab, candidates)
