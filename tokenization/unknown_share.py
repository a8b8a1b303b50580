"""Measures the share of a text's tokens that are [UNK], and explains a large share."""

import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from tokenization.base import TokenizerInterface
from tokenization.characters import is_punctuation
from tokenization.sentencepiece import WORD_START
from tokenization.vocabulary import count_hangul_entries, is_special
from tokenization.wordpiece import WordPiece

# A vocabulary that suits a text stays far below this.
LARGEST_SHARE = 0.05

# With fewer tokens, the share says little, unless no word at all has a token.
FEWEST_PIECES = 20

# The maximum counted: enough for a reliable share, in a fraction of a second.
MOST_TEXTS = 1000
MOST_PIECES = 50_000
MOST_CHARACTERS = 2000  # per text

# The number of words that a message shows, and of characters of each.
WORDS_SHOWN = 5
CHARACTERS_SHOWN = 20

# A kind of token is common if more than this share of a vocabulary is of that kind.
COMMON_SHARE = 0.1

# English vocabularies hold a few jamo or syllables; multilingual ones hold more than this share.
HANGUL_SHARE = 0.005

HANGUL = re.compile("[\uac00-\ud7a3\u1100-\u11ff]")
LEADING_JAMO = re.compile("[\u1100-\u1112][\u1161-\u1175]")
CAPITAL = re.compile("[A-Z]")
# A mask with the text that touches it, because "##는" in "[MASK]는" is not a word.
MASKED = re.compile(r"\S*\[MASK\]\S*")


class UnknownCounter:
    """Counts tokens and [UNK]s of the first texts that a tokenizer gets, over several calls.

    `words` are the first words that have an [UNK].
    """

    def __init__(self, tokenizer: TokenizerInterface) -> None:
        self.tokenizer = tokenizer
        self.pieces = self.unknown = self.texts = 0
        self.words: list[str] = []
        self._has_known_word = False

    @property
    def is_done(self) -> bool:
        """Whether enough has been counted."""
        return self.texts >= MOST_TEXTS or self.pieces >= MOST_PIECES

    def add(self, texts: Iterable[str]) -> None:
        """Counts the tokens of texts until enough have been counted."""
        if self.tokenizer.unk_id is None:
            return
        for text in texts:
            if self.is_done:
                return
            text = MASKED.sub(" ", text[:MOST_CHARACTERS])
            tokens, unknown = self._cut(text)
            self.texts += 1
            self.pieces += len(tokens)
            self.unknown += sum(unknown)
            known = (token for token, is_one in zip(tokens, unknown, strict=True) if not is_one)
            texts = (token.removeprefix(WORD_START) for token in known)
            self._has_known_word |= any(not all(map(is_punctuation, text)) for text in texts)
            if any(unknown) and len(self.words) < WORDS_SHOWN:
                new = (word for word in dict.fromkeys(text.split()) if word not in self.words)
                lacking = (word for word in new if any(self._cut(word)[1]))
                self.words += islice(lacking, WORDS_SHOWN - len(self.words))

    def _cut(self, text):
        """Returns the tokens of a text, and for each whether it is [UNK]."""
        tokens = self.tokenizer.tokenize(text)
        ids = self.tokenizer.convert_tokens_to_ids(tokens)
        return tokens, [index == self.tokenizer.unk_id for index in ids]

    def describe(self) -> str | None:
        """Describes the share of [UNK], with words and the likely cause.

        Returns None if it is at most `LARGEST_SHARE` or the texts are too short to tell.
        """
        has_letters = any(map(str.isalpha, "".join(self.words)))
        if self.pieces < FEWEST_PIECES and (self._has_known_word or not has_letters):
            return None
        return self.describe_share(self.unknown, self.pieces)

    def describe_share(self, unknown: int, pieces: int) -> str | None:
        """Does what `describe` does for a text that was counted elsewhere."""
        if unknown <= LARGEST_SHARE * pieces:
            return None
        shown = ", ".join(repr(word[:CHARACTERS_SHOWN]) for word in self.words)
        return (
            f"{unknown / pieces:.0%} of the tokens ({unknown:,} of {pieces:,}) are [UNK]"
            + (f": the vocabulary cannot spell {shown}. " if shown else ". ")
            + f"Likely cause: {find_cause(self.tokenizer, self.words)}"
        )


def warn_of_unknown(tokenizer: TokenizerInterface, texts: Iterable[str], where: str = "") -> bool:
    """Warns if the first of the texts have many [UNK]s, naming `where`; returns whether it did."""
    counter = UnknownCounter(tokenizer)
    counter.add(texts)
    found = counter.describe()
    if found:
        warnings.warn(f"{where}{found}", stacklevel=2)
    return found is not None


def flatten(value: Any) -> Iterator[str]:
    """Yields the texts in a value that is a text, or a list or tuple of texts at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from flatten(each)


class Evidence(NamedTuple):
    """The facts from which a cause of [UNK] is recognized."""

    tokenizer: TokenizerInterface
    words: list[str]  # some words with an [UNK]
    pieces: list[str]  # the tokens of the vocabulary, without special tokens

    def option(self, name: str) -> Any:
        """Returns an option of the tokenizer, or None if it has no such option."""
        return getattr(self.tokenizer.options, name, None)

    @property
    def hangul(self) -> tuple[int, int]:
        """The counts of `count_hangul_entries`."""
        return count_hangul_entries(self.pieces)

    @property
    def wordpiece(self) -> WordPiece | None:
        """The tokenizer's `WordPiece`, or None."""
        return getattr(self.tokenizer, "wordpiece", None)

    @property
    def prefix(self) -> str | None:
        """The prefix of tokens inside a word, or None if the tokenizer does not use WordPiece."""
        wordpiece = self.wordpiece
        return None if wordpiece is None else wordpiece.continuation_prefix

    def is_common(self, is_such: Callable[[str], bool]) -> bool:
        """Returns True if the vocabulary has many tokens of a kind."""
        longer = [piece for piece in self.pieces if len(piece) > 1]
        return sum(map(is_such, longer)) > COMMON_SHARE * len(self.pieces)

    def are_most(self, pattern: re.Pattern[str]) -> bool:
        """Returns True if most of the words contain a pattern."""
        return 2 * sum(bool(pattern.search(word)) for word in self.words) > len(self.words)


def _marks_word_starts(found):
    is_read = WORD_START in (found.prefix, found.option("word_end_marker"))
    return (
        found.wordpiece
        and not is_read
        and found.is_common(lambda piece: piece.startswith(WORD_START))
    )


def _marks_word_ends(found):
    is_read = found.option("word_end_marker") == "_"
    return found.wordpiece and not is_read and found.is_common(lambda piece: piece.endswith("_"))


def _has_no_hangul(found):
    return found.are_most(HANGUL) and sum(found.hangul) < HANGUL_SHARE * len(found.pieces)


def _needs_decomposed(found):
    syllables, jamo = found.hangul
    return found.are_most(HANGUL) and 10 * syllables < jamo and not found.tokenizer.decomposes


def _is_taken_apart(found):
    syllables, jamo = found.hangul
    return found.are_most(HANGUL) and 10 * jamo < syllables and found.tokenizer.decomposes


def _is_decomposed(found):
    syllables, jamo = found.hangul
    composes = found.tokenizer.kind == "sentencepiece" or found.option("normalization")
    return found.are_most(LEADING_JAMO) and 10 * jamo < syllables and not composes


def _has_no_capitals(found):
    has_capitals = any(map(CAPITAL.search, found.pieces))
    return found.are_most(CAPITAL) and not has_capitals and not found.tokenizer.do_lower_case


# (a test of the `Evidence`, the cause with its cure); the first cause whose test passes is named.
CAUSES = (
    (
        _marks_word_starts,
        'many tokens of the vocabulary begin with "▁", as SentencePiece writes them, but it is '
        "read as WordPiece: use the model file (.model), with --spm_model_file",
    ),
    (
        _marks_word_ends,
        'many tokens of the vocabulary end with "_", which marks the end of a word, as in ETRI\'s '
        "KorBERT, but are read without the mark: use --tokenizer_dir, a folder with vocab.txt and "
        'a tokenizer_config.json of {"kind": "korean", "continuation_prefix": "", '
        '"word_end_marker": "_"}',
    ),
    (
        _has_no_hangul,
        "the vocabulary has no tokens of Hangul, or hardly any, so it was made for another "
        "language: use a model with a Korean or multilingual vocabulary",
    ),
    (
        _needs_decomposed,
        "the vocabulary spells Korean in conjoining jamo, and the text is not decomposed: use "
        "FullTokenizer (--tokenizer=full) with do_lower_case=True",
    ),
    (
        _is_taken_apart,
        "the tokenizer takes Hangul apart (NFD), as lower-casing does in google-research/bert, but "
        "the vocabulary holds syllables: use KoreanTokenizer (--tokenizer=korean) or "
        "do_lower_case=False",
    ),
    (
        _is_decomposed,
        "the text is decomposed Hangul (NFD), as macOS writes names of files, but the vocabulary "
        "holds syllables: use KoreanTokenizer (--tokenizer=korean), which composes it",
    ),
    (
        _has_no_capitals,
        "the vocabulary has no capital letters, and the text is not lower-cased: use "
        "do_lower_case=True",
    ),
)
OTHER_CAUSE = (
    "the vocabulary was learned from text of another kind or language, or without characters that "
    "are common here, such as emoji; or the text was decoded with the wrong encoding"
)


def find_cause(tokenizer: TokenizerInterface, words: list[str]) -> str:
    """Returns the likely cause of [UNK] in words, with its cure."""
    pieces = [token for token in tokenizer.vocab if token and not is_special(token)]
    found = Evidence(tokenizer, words, pieces)
    return next((cause for explains, cause in CAUSES if explains(found)), OTHER_CAUSE)
