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

from bert_common.errors import InputError
from bert_common.folders import make_writable
from tokenization.korean import KoreanTokenizer
from tokenization.loading import CONFIG_FILE, load_tokenizer
from tokenization.vocab_learning.endings import mark_by_endings
from tokenization.vocab_learning.morphemes import BOUNDARY, INSIDE, kiwi_versions, mark_with_kiwi
from tokenization.vocab_learning.pieces import PREFIX, choose_pieces, cut_greedily, split_kinds
from tokenization.vocab_learning.text_sample import Text, read_sample, read_sentences
from tokenization.vocabulary import SPECIAL_TOKENS

VOCABULARY_FILE, REPORT_FILE = "vocab.txt", "report.json"

# The switches of tokenizers that use vocabularies learned here, beside do_lower_case; those that
# KoreanTokenizer does not have are left out.
SWITCHES = {"jamo_fallback": True, "unknown": "character"}

# Always in the vocabulary, at the beginning of words and inside them, so that no Korean is [UNK].
# First what spells a syllable that the vocabulary lacks: 19 initial consonants, 21 vowels, 27
# final consonants; then the one old vowel that people still write, as a dot.
CONJOINING_JAMO = [*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3), 0x119E]
# Chat writes these by themselves (ㅋㅋ, ㅠㅠ); the whole block, as ㆍ is a common dot.
COMPATIBILITY_JAMO = range(0x3131, 0x318F)
JAMO = [chr(code) for code in (*CONJOINING_JAMO, *COMPATIBILITY_JAMO)]

# Also always there, though the text at hand may lack some of it ("<" in an encyclopedia).
ASCII_PUNCTUATION = string.punctuation  # each mark is a word of its own: no form with ##
ASCII_LETTERS = string.digits + string.ascii_letters

UNUSED = "[unused{}]"  # as google-research/bert names its reserved lines

ANALYSERS = ("kiwi", "none")


@dataclasses.dataclass(frozen=True)
class LearningSettings:
    """What decides a vocabulary, beside the text.

    Attributes:
        vocab_size: lines of the vocabulary, at most.
        analyser: "kiwi" marks the morphemes with kiwipiepy; "none" needs no package.
        num_unused: reserved lines after the special tokens.
        user_symbols: kept whole, written as in the vocabulary ("가" at the beginning of words,
            "##가" inside them).
        character_coverage: the share of the text's characters that have pieces of their own.
        do_lower_case: lower-case the text, here and in the tokenizer.
        most_megabytes: learn from a sample of about this size when the text is larger.
        random_seed: decides which lines are in the sample.
        strict_utf8: refuse text that is not UTF-8 instead of leaving such bytes out.
        num_threads: how many threads analyse; the vocabulary does not depend on it.

    Raises:
        InputError: a value out of its range; a symbol that no vocabulary can hold.
    """

    vocab_size: int = 32000
    analyser: str = "kiwi"
    num_unused: int = 0
    user_symbols: tuple[str, ...] = ()
    character_coverage: float = 0.9995
    do_lower_case: bool = False
    most_megabytes: int = 32
    random_seed: int = 12345
    strict_utf8: bool = False
    num_threads: int = 2

    def __post_init__(self):
        least = {"vocab_size": 1, "num_unused": 0, "most_megabytes": 1, "num_threads": 1}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise InputError(
                    f"{name} must be at least {bound}. Received: {getattr(self, name)}"
                )
        if not 0 < self.character_coverage <= 1:
            raise InputError(
                "character_coverage must be above 0, at most 1. "
                f"Received: {self.character_coverage}"
            )
        if self.analyser not in ANALYSERS:
            raise InputError(
                f"analyser must be one of {', '.join(ANALYSERS)}. Received: {self.analyser!r}"
            )
        reserved = {*SPECIAL_TOKENS, *map(UNUSED.format, range(self.num_unused))}
        for symbol in self.user_symbols:
            if symbol.split() != [symbol] or symbol == PREFIX:
                raise InputError(f"a user symbol must hold no space. Received: {symbol!r}")
            if symbol in reserved or self.user_symbols.count(symbol) > 1:
                raise InputError(
                    f"a user symbol must be no other line of the vocabulary. Received: {symbol!r}"
                )
        if len(reserved) + len(self.user_symbols) >= self.vocab_size:
            raise InputError(
                f"vocab_size must be larger than its {len(reserved) + len(self.user_symbols)} "
                f"reserved lines. Received: {self.vocab_size}"
            )


@dataclasses.dataclass(frozen=True)
class LearnedVocabulary:
    """A vocabulary with what is known about it.

    Attributes:
        pieces: the lines of the vocabulary.
        config: the content of tokenizer_config.json.
        report: settings, versions, counts: what goes into report.json.
    """

    pieces: list[str]
    config: dict
    report: dict


def learn_vocabulary(texts: Iterable[Text], settings: LearningSettings) -> LearnedVocabulary:
    """Learns from texts.

    Equal text with equal settings gives an equal vocabulary, on any machine with the same
    versions (named in the report).

    Args:
        texts: UTF-8, in any number of lines.
        settings: what to learn.

    Raises:
        InputError: no word in the text; too small a vocabulary for the characters; text that is
            not UTF-8 while `strict_utf8`; the analyser is not installed.
    """
    texts = list(texts)
    files = [str(text.name) for text in texts]
    counts, characters = Counter(), Counter()
    splitter = _word_splitter(settings)
    for symbol in settings.user_symbols:
        if splitter.basic_tokens(symbol.removeprefix(PREFIX)) != [symbol.removeprefix(PREFIX)]:
            warnings.warn(
                f"the user symbol {symbol} has a line, but the tokenizer takes it apart before "
                "it looks for pieces: text never becomes this symbol",
                stacklevel=2,
            )
    lines = read_sample(
        texts,
        settings.most_megabytes * 1_000_000,
        settings.random_seed,
        settings.strict_utf8,
        counts,
    )
    sentences = read_sentences(lines, splitter.basic_tokens, characters)
    if settings.analyser == "kiwi":
        marked_words = Counter(mark_with_kiwi(sentences, settings.num_threads))
    else:
        words = Counter(word for sentence in sentences for word in sentence.split(" "))
        marked_words = mark_by_endings(words)
    if not characters:
        raise InputError(
            f"the text must hold at least one word. Received: {', '.join(files)}, "
            f"{counts['bytes']} bytes, no word"
        )
    covered, coverage = cover_characters(characters, settings.character_coverage)
    reserved = [
        *SPECIAL_TOKENS,
        *map(UNUSED.format, range(settings.num_unused)),
        *settings.user_symbols,
    ]
    taken = {*reserved}
    jamo = [piece for piece in _both_forms(JAMO) if piece not in taken]
    ascii_pieces = [*ASCII_PUNCTUATION, *_both_forms(ASCII_LETTERS)]
    covered = sorted({*covered, *ascii_pieces} - {*reserved, *jamo})
    places = settings.vocab_size - len(reserved) - len(jamo) - len(covered)
    if places < 0:
        raise InputError(
            f"vocab_size must be at least {settings.vocab_size - places}: {len(reserved)} "
            f"reserved lines, {len(jamo)} jamo, {len(covered)} pieces of one character for "
            f"{coverage:.4%} of the text (character_coverage). Received: {settings.vocab_size}"
        )
    chosen = choose_pieces(marked_words, places, settings.user_symbols)
    usage = describe_usage(marked_words, [*covered, *settings.user_symbols, *chosen])
    uses = usage.pop("uses")
    learned = sorted([*covered, *chosen], key=lambda piece: (-uses[piece], piece))
    config = {"kind": KoreanTokenizer.kind, **_switches(settings)}
    report = {
        "settings": {"files": files, **_settings_that_decide(settings)},
        "versions": _versions(settings),
        "text": {
            **{name: counts[name] for name in TEXT_COUNTS},
            "words": sum(marked_words.values()),
            "distinct_words": len({word for word, _ in marked_words}),
            "distinct_characters": len({piece[-1] for piece in characters}),
        },
        "vocabulary": {
            "lines": len(reserved) + len(jamo) + len(learned),
            "special": len(SPECIAL_TOKENS),
            "unused": settings.num_unused,
            "user_symbols": len(settings.user_symbols),
            "jamo": len(jamo),
            "one_character": len(covered),
            "longer": len(chosen),
        },
        "character_coverage": round(coverage, 6),
        **usage,
    }
    return LearnedVocabulary([*reserved, *jamo, *learned], config, report)


TEXT_COUNTS = (
    "bytes", "lines", "sampled_bytes", "sampled_lines", "lines_not_utf8", "bytes_not_utf8",
)  # fmt: skip


def _both_forms(characters):
    return [*characters, *(PREFIX + character for character in characters)]


def _switches(settings) -> dict:
    known = {name: value for name, value in SWITCHES.items() if name in KoreanTokenizer.switches}
    return {"do_lower_case": settings.do_lower_case, **known}


def _settings_that_decide(settings) -> dict:
    values = dataclasses.asdict(settings)
    del values["num_threads"]
    return values


def _word_splitter(settings) -> KoreanTokenizer:
    """A tokenizer that splits text into words exactly as the one to be written will."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / VOCABULARY_FILE
        pieces = [*SPECIAL_TOKENS, *_both_forms(JAMO)]
        path.write_text("\n".join(pieces) + "\n", encoding="utf-8")
        with warnings.catch_warnings():  # that this has jamo without syllables
            warnings.simplefilter("ignore")
            return KoreanTokenizer(path, **_switches(settings))


def _versions(settings) -> dict:
    versions = {"python": platform.python_version(), "unicode": unicodedata.unidata_version}
    return {**versions, **kiwi_versions()} if settings.analyser == "kiwi" else versions


def cover_characters(characters: Counter, share: float) -> tuple[list[str], float]:
    """The fewest pieces of one character that make up a share of the text.

    Args:
        characters: how often each occurs, "가" at the beginning of a word, "##가" elsewhere.
        share: of all occurrences; 1 covers every one.

    Returns:
        The pieces, most frequent first; the share that they really make up.
    """
    total, sum_so_far, covered = sum(characters.values()), 0, []
    for piece, count in sorted(characters.items(), key=lambda item: (-item[1], item[0])):
        if sum_so_far >= share * total:
            break
        covered.append(piece)
        sum_so_far += count
    return covered, sum_so_far / total


def describe_usage(marked_words: Counter, pieces: Iterable[str]) -> dict:
    """How greedy longest match cuts the learning text.

    Args:
        marked_words: how often each (word, marks) occurs.
        pieces: the vocabulary without what text never becomes.

    Returns:
        pieces_per_word; boundary_precision, boundary_recall against the marks; uses, how often
        each piece occurs.
    """
    starts, rests = split_kinds(pieces)
    longest = max(map(len, [*starts, *rests]))
    uses, hits, wrong, missed, words = Counter(), 0, 0, 0, 0
    for (word, marks), count in marked_words.items():
        ends = cut_greedily(word, starts, rests, longest)
        for start, end in zip([0, *ends], ends, strict=False):
            uses[(PREFIX if start else "") + word[start:end]] += count
        cut = [marks[end - 1] for end in ends[:-1]]
        words += count
        hits += count * cut.count(BOUNDARY)
        wrong += count * cut.count(INSIDE)
        missed += count * (marks.count(BOUNDARY) - cut.count(BOUNDARY))
    return {
        "pieces_per_word": round(uses.total() / words, 4) if words else None,
        "boundary_precision": round(hits / (hits + wrong), 4) if hits + wrong else None,
        "boundary_recall": round(hits / (hits + missed), 4) if hits + missed else None,
        "uses": uses,
    }


def write_vocabulary(learned: LearnedVocabulary, directory: str | os.PathLike) -> None:
    """Writes vocab.txt, tokenizer_config.json, report.json; a file of that name is replaced.

    Each is written whole under another name first, read back as a tokenizer, then renamed.

    Raises:
        InputError: the directory cannot be made or written to.
    """
    directory = Path(directory)
    contents = {
        VOCABULARY_FILE: "".join(f"{piece}\n" for piece in learned.pieces),
        CONFIG_FILE: _as_json(learned.config),
        REPORT_FILE: _as_json(learned.report),
    }
    make_writable(directory, "the output must be a folder that can be made and written to")
    temporary = Path(tempfile.mkdtemp(prefix=".build_vocab.", dir=directory))
    try:
        for name, content in contents.items():
            (temporary / name).write_text(content, encoding="utf-8", newline="\n")
        load_tokenizer(temporary)
        for name in contents:
            os.replace(temporary / name, directory / name)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _as_json(value) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
