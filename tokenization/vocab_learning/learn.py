"""Learns a vocabulary for KoreanTokenizer from text."""

import dataclasses
import json
import os
import platform
import shutil
import string
import tempfile
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bert_common.errors import InputError
from bert_common.folders import make_writable
from tokenization.byte_pieces import byte_vocabulary
from tokenization.characters import FINALS, INITIALS, VOWELS, is_syllable
from tokenization.korean import KoreanTokenizer
from tokenization.loading import CONFIG_FILE, load_tokenizer
from tokenization.vocab_learning.endings import mark_by_endings
from tokenization.vocab_learning.morphemes import kiwi_versions, mark_with_kiwi
from tokenization.vocab_learning.pieces import PREFIX, choose_pieces
from tokenization.vocab_learning.text_sample import TextFile, read_sample, read_sentences
from tokenization.vocab_learning.usage import describe_usage
from tokenization.vocab_learning.weights import count_in_blocks, spread_weights
from tokenization.vocabulary import SPECIAL_TOKENS

VOCABULARY_FILE, REPORT_FILE = "vocab.txt", "report.json"

# Always in the vocabulary, at the beginning of words and inside them, so that no Korean is [UNK].
# These spell the syllables that the vocabulary lacks; U+119E is the only old vowel that is still
# written, as a dot.
CONJOINING_JAMO = (*INITIALS, *VOWELS, *FINALS, "\u119e")
# Chat uses these alone (ㅋㅋ, ㅠㅠ); this is the whole block, because ㆍ is a common dot.
COMPATIBILITY_JAMO = tuple(map(chr, range(0x3131, 0x318F)))
JAMO = [*CONJOINING_JAMO, *COMPATIBILITY_JAMO]

# The most frequent syllables, up to this share of the text, always have a piece. Rarer ones compete
# with longer pieces, or else jamo spell them. With 0.98, boundary F1 is 0.001 higher at 16,000
# pieces and 0.011 at 8,000, but reviews need 3 % and 6 % more pieces, in jamo.
SYLLABLE_COVERAGE = 0.995

# Also always in the vocabulary, although a text may lack some of them ("<" in an encyclopedia).
ASCII_PUNCTUATION = string.punctuation  # each mark is a separate word: no form with ##
ASCII_LETTERS = string.digits + string.ascii_letters

# Continuations in a vocabulary of bytes: the joiner of emoji and the mark of their coloured form.
EMOJI_JOINTS = ("\u200d", "\ufe0f")

UNUSED = "[unused{}]"  # as google-research/bert names its reserved lines

ANALYSERS = ("kiwi", "none")

NORMALIZATIONS = ("NFC", "NFKC")

# What becomes of a character without a piece: [UNK], or the pieces of its UTF-8 bytes.
UNKNOWNS = ("character", "bytes")


@dataclasses.dataclass(frozen=True)
class LearningSettings:
    """The settings that, with the text, determine a vocabulary.

    Raises:
        InputError: a value is out of range, or no vocabulary can hold a symbol.
    """

    vocab_size: int = 32000  # the maximum number of lines of the vocabulary
    analyser: str = "kiwi"  # "kiwi" marks morphemes with kiwipiepy; "none" needs no package
    num_unused: int = 0  # the number of reserved lines after the special tokens
    # Pieces to keep whole, spelled as in the vocabulary: "가" begins words, "##가" is inside them.
    user_symbols: tuple[str, ...] = ()
    # The share of the text's characters that get pieces, or are syllables, which jamo can spell.
    character_coverage: float = 0.9995
    do_lower_case: bool = False  # whether to lower-case the text, here and in the tokenizer
    normalization: str = "NFC"  # one of NORMALIZATIONS, as in KoreanTokenizer
    unknown: str = "character"  # one of UNKNOWNS
    most_megabytes: int = 32  # a larger text is sampled down to about this size
    random_seed: int = 12345  # determines which lines are in the sample
    num_threads: int = 2  # the analyser's threads; the vocabulary does not depend on it

    def __post_init__(self) -> None:
        least = {"vocab_size": 1, "num_unused": 0, "most_megabytes": 1, "num_threads": 1}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise InputError(
                    f"{name} must be at least {bound}. Received: {getattr(self, name)}"
                )
        if not 0 < self.character_coverage <= 1:
            raise InputError(
                "character_coverage must be above 0 and at most 1. "
                f"Received: {self.character_coverage}"
            )
        choices = {"analyser": ANALYSERS, "normalization": NORMALIZATIONS, "unknown": UNKNOWNS}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise InputError(
                    f"{name} must be one of {', '.join(allowed)}. Received: {getattr(self, name)!r}"
                )
        reserved = {*SPECIAL_TOKENS, *map(UNUSED.format, range(self.num_unused))}
        reserved |= set(self.byte_pieces)
        for symbol in self.user_symbols:
            if symbol.split() != [symbol] or symbol == PREFIX:
                raise InputError(
                    f"a user symbol must hold no space, and text after ##. Received: {symbol!r}"
                )
            if symbol in reserved or self.user_symbols.count(symbol) > 1:
                raise InputError(
                    f"a user symbol must not be on another line too. Received: {symbol!r}"
                )
        if len(reserved) + len(self.user_symbols) >= self.vocab_size:
            raise InputError(
                f"vocab_size must be larger than its {len(reserved) + len(self.user_symbols)} "
                f"reserved lines. Received: {self.vocab_size}"
            )

    @property
    def byte_pieces(self) -> list[str]:
        """The pieces of bytes, if bytes spell the characters without a piece; otherwise empty."""
        return byte_vocabulary(PREFIX) if self.unknown == "bytes" else []


@dataclasses.dataclass(frozen=True)
class LearnedVocabulary:
    """A learned vocabulary and its description."""

    pieces: list[str]  # the lines of the vocabulary
    config: dict[str, Any]  # the contents of tokenizer_config.json
    report: dict[str, Any]  # the contents of report.json: settings, versions, counts


def learn_vocabulary(texts: Iterable[TextFile], settings: LearningSettings) -> LearnedVocabulary:
    """Learns a vocabulary from UTF-8 texts with any number of lines.

    The same text and settings give the same vocabulary on any machine with the same versions,
    which the report names.

    Raises:
        InputError: the text has no word or is not UTF-8; the vocabulary is too small for the
            characters; or the analyser is not installed.
    """
    texts = list(texts)
    splitter = _word_splitter(settings)
    _warn_of_unreachable_symbols(settings.user_symbols, splitter)
    counts: Counter[str] = Counter()
    characters: Counter[str] = Counter()
    size, seed = settings.most_megabytes * 1_000_000, settings.random_seed
    lines = read_sample(texts, size, seed, counts)
    sentences = read_sentences(lines, splitter.basic_tokens, characters)
    marked_words, weights = _mark_words(sentences, settings)
    files = [str(text.name) for text in texts]
    if not characters:
        raise InputError(
            f"the text must hold at least one word. Received: {', '.join(files)}, "
            f"{counts['bytes']} bytes, no word"
        )
    given = _given_pieces(characters, settings)
    room = settings.vocab_size - len(given.reserved) - len(given.jamo) - len(given.characters)
    fixed = [*given.characters, *settings.user_symbols]
    chosen = choose_pieces(weights, room, fixed)
    known = [*given.jamo, *fixed, *chosen]
    usage = describe_usage(marked_words, known, bool(settings.byte_pieces))
    uses = usage.pop("uses")
    learned = sorted([*given.characters, *chosen], key=lambda piece: (-uses[piece], piece))
    deciding = dataclasses.asdict(settings)
    del deciding["num_threads"]
    report = {
        "settings": {"files": files, **deciding},
        "versions": _versions(settings),
        "text": {
            **{name: counts[name] for name in TEXT_COUNTS},
            "words": sum(marked_words.values()),
            "distinct_words": len({word for word, _ in marked_words}),
            "distinct_characters": len({piece[-1] for piece in characters}),
        },
        "vocabulary": _count_pieces(learned, given, settings),
        "character_coverage": round(given.coverage, 6),
        **_share_of_missing(characters, learned, given, settings),
        **usage,
    }
    config = {"kind": KoreanTokenizer.kind, **_tokenizer_options(settings)}
    return LearnedVocabulary([*given.reserved, *given.jamo, *learned], config, report)


TEXT_COUNTS = ("bytes", "lines", "sampled_bytes", "sampled_lines")


def _count_pieces(learned, given, settings):
    """Counts the lines of the vocabulary by their kind."""
    one_character = sum(len(piece.removeprefix(PREFIX)) == 1 for piece in learned)
    return {
        "lines": len(given.reserved) + len(given.jamo) + len(learned),
        "special": len(SPECIAL_TOKENS),
        "unused": settings.num_unused,
        "user_symbols": len(settings.user_symbols),
        "jamo": len(given.jamo),
        **({"bytes": len(settings.byte_pieces)} if settings.byte_pieces else {}),
        "one_character": one_character,
        "longer": len(learned) - one_character,
    }


def _share_of_missing(characters, learned, given, settings):
    """Returns the shares of the text's characters that jamo spell and that nothing spells."""
    present = {*learned, *settings.user_symbols}
    missing = {piece: count for piece, count in characters.items() if piece not in present}
    by_jamo = sum(count for piece, count in missing.items() if is_syllable(piece[-1]))
    others = sum(missing.values()) - by_jamo - sum(missing.get(jamo, 0) for jamo in given.jamo)
    return {
        "spelled_with_jamo": round(by_jamo / characters.total(), 6),
        "without_a_piece": round(others / characters.total(), 6),
    }


def _warn_of_unreachable_symbols(symbols, splitter):
    for symbol in symbols:
        text = symbol.removeprefix(PREFIX)
        text = text if text == symbol else "0" + text  # inside a word, where punctuation never is
        if splitter.basic_tokens(text) != [text]:
            warnings.warn(
                f"the user symbol {symbol} has a line, but the tokenizer splits it before it "
                "looks for tokens: text never becomes this symbol",
                stacklevel=3,
            )


def _mark_words(
    sentences: Iterable[str], settings: LearningSettings
) -> tuple[Counter[tuple[str, str]], dict[tuple[str, str], float]]:
    """Counts and weighs each (word, marks), with marks as from `morphemes.mark_places`."""
    if settings.analyser == "kiwi":
        marked, blocks = count_in_blocks(mark_with_kiwi(sentences, settings.num_threads))
        return marked, spread_weights(list(marked), blocks)
    words, blocks = count_in_blocks(sentence.split(" ") for sentence in sentences)
    marked = mark_by_endings(words)
    marks_of = dict(marked.keys())
    return marked, spread_weights([(word, marks_of[word]) for word in words], blocks)


class _GivenPieces(NamedTuple):
    """The lines of the vocabulary that are not chosen by their use."""

    reserved: list[str]  # special tokens, unused lines, bytes, user symbols
    jamo: list[str]
    characters: list[str]  # other pieces of one character, except rarer syllables
    coverage: float  # the share of the text's characters that these and rarer syllables make up


def _given_pieces(characters: Counter[str], settings: LearningSettings) -> _GivenPieces:
    covered, coverage = cover_characters(characters, settings.character_coverage)
    frequent, _ = cover_characters(characters, min(SYLLABLE_COVERAGE, settings.character_coverage))
    frequent = set(frequent)
    covered = [piece for piece in covered if piece in frequent or not is_syllable(piece[-1])]
    unused = map(UNUSED.format, range(settings.num_unused))
    reserved = [*SPECIAL_TOKENS, *unused, *settings.byte_pieces, *settings.user_symbols]
    jamo = [piece for piece in _both_forms(JAMO) if piece not in reserved]
    letters = ASCII_LETTERS.lower() if settings.do_lower_case else ASCII_LETTERS
    ascii_pieces = [*ASCII_PUNCTUATION, *_both_forms(letters)]
    joints = [PREFIX + joint for joint in EMOJI_JOINTS] if settings.byte_pieces else []
    covered = sorted({*covered, *ascii_pieces, *joints} - {*reserved, *jamo})
    needed = len(reserved) + len(jamo) + len(covered)
    if needed > settings.vocab_size:
        raise InputError(
            f"vocab_size must be at least {needed}: {len(reserved)} reserved lines, {len(jamo)} "
            f"jamo, {len(covered)} tokens of one character for {coverage:.4%} of the text "
            f"(character_coverage). Received: {settings.vocab_size}"
        )
    return _GivenPieces(reserved, jamo, covered, coverage)


def _both_forms(characters):
    return [*characters, *(PREFIX + character for character in characters)]


def _tokenizer_options(settings: LearningSettings) -> dict[str, Any]:
    options: dict[str, Any] = {"do_lower_case": settings.do_lower_case, "jamo_fallback": True}
    if settings.normalization != "NFC":  # the default, which is left out
        options["normalization"] = settings.normalization
    return {**options, "unknown": settings.unknown}


def _word_splitter(settings: LearningSettings) -> KoreanTokenizer:
    """Returns a tokenizer that splits text into words exactly as the learned one will."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / VOCABULARY_FILE
        pieces = [*SPECIAL_TOKENS, *settings.byte_pieces, *_both_forms(JAMO)]
        path.write_text("\n".join(pieces) + "\n", encoding="utf-8")
        with warnings.catch_warnings():  # about jamo without syllables
            warnings.simplefilter("ignore")
            return KoreanTokenizer(path, **_tokenizer_options(settings))


def _versions(settings: LearningSettings) -> dict[str, str]:
    versions = {"python": platform.python_version(), "unicode": unicodedata.unidata_version}
    return {**versions, **kiwi_versions()} if settings.analyser == "kiwi" else versions


def cover_characters(characters: Counter[str], share: float) -> tuple[list[str], float]:
    """Finds the fewest pieces of one character that make up a share of the text.

    Pieces are "가" at the beginning of a word, "##가" elsewhere; a share of 1 covers every piece.
    Returns them, most frequent first, and the share that they actually make up.
    """
    total, sum_so_far, covered = sum(characters.values()), 0, []
    for piece, count in sorted(characters.items(), key=lambda item: (-item[1], item[0])):
        if sum_so_far >= share * total:
            break
        covered.append(piece)
        sum_so_far += count
    return covered, sum_so_far / total


def write_vocabulary(learned: LearnedVocabulary, directory: str | os.PathLike[str]) -> None:
    """Writes vocab.txt, tokenizer_config.json and report.json; existing files are replaced.

    The files are written to a temporary folder, loaded as a tokenizer for a check, then moved.
    """
    directory = Path(directory)
    # The report is moved first, so that it identifies the files if a run is killed between moves.
    contents = {
        REPORT_FILE: _as_json(learned.report),
        VOCABULARY_FILE: "".join(f"{piece}\n" for piece in learned.pieces),
        CONFIG_FILE: _as_json(learned.config),
    }
    make_writable(directory, "the output must be a folder that can be created and written to")
    temporary = Path(tempfile.mkdtemp(prefix=".build_vocab.", dir=directory))
    try:
        for name, content in contents.items():
            (temporary / name).write_text(content, encoding="utf-8", newline="\n")
        load_tokenizer(temporary)
        for name in contents:  # no old file may be left beside the new report
            (directory / name).unlink(missing_ok=True)
        for name in contents:
            os.replace(temporary / name, directory / name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
