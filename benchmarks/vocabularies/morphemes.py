"""Measures how well the pieces of vocabularies agree with morphemes.

    python -m benchmarks.vocabularies.morphemes \\
        --conllu=ko_kaist-ud-dev.conllu --vocabs=VOCAB,VOCAB,...

A VOCAB is anything that `build_vocab.py --compare` takes. The treebank has each word's morphemes
(in the lemma column, joined by +; or as OrigLemma in the last column). Prints a Markdown table:

* precision, recall, F1 of the boundaries between pieces against those between morphemes, over the
  words that are spelled as their morphemes;
* contracted F1: the same over the other words (했다 = 하 + 었 + 다), only for positions outside of
  the contraction;
* pieces per word over all words; words with [UNK], and how many of them are Hangul.

Words without a letter or digit are left out. Each word is tokenized by itself.
"""

import unicodedata
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import flag, launch, print_table
from bert_common.errors import InputError
from tokenization.comparison import boundaries, open_vocabulary

# Halves to tune on and to report: every second sentence.
HALVES = {"all": slice(None), "even": slice(0, None, 2), "odd": slice(1, None, 2)}

HEADINGS = [
    "vocabulary", "kind", "pieces", "precision", "recall", "F1", "contracted F1",
    "pieces per word", "words with [UNK]", "of Hangul",
]  # fmt: skip


class Word(NamedTuple):
    """A word of the treebank."""

    form: str
    morphemes: tuple[str, ...]


class Gold(NamedTuple):
    """The boundaries of a word's morphemes; position i is before character i."""

    boundaries: set[int]
    known: set[int]  # positions of which is known whether they are boundaries
    contracted: bool


def read_conllu(path):
    """The sentences of a treebank, as lists of `Word`.

    Raises:
        InputError: the file is not CoNLL-U.
    """
    sentences, words = [], []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), start=1):
        if not line:
            if words:
                sentences.append(words)
            words = []
        elif not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != 10:
                raise InputError(
                    f"{path}, line {number}: a line of CoNLL-U must have 10 fields. "
                    f"Received: {len(fields)}"
                )
            if fields[0].isdigit():  # not a range, not an empty node
                words.append(Word(fields[1], _morphemes(fields)))
    return [*sentences, words] if words else sentences


def _morphemes(fields):
    lemma = fields[2]
    for item in fields[9].split("|"):
        lemma = item.removeprefix("OrigLemma=") if item.startswith("OrigLemma=") else lemma
    return tuple(filter(None, lemma.split("+"))) or (fields[1],)


def gold_places(word):
    """Finds the boundaries between the morphemes of a word.

    A contracted word is compared with its morphemes by jamo, from both ends: positions in the equal
    parts are known, positions in the contraction between them are not.
    """
    sound = unicodedata.normalize("NFD", word.form)
    spelled = "".join(_sound(morpheme) for morpheme in word.morphemes)
    meeting, length = set(), 0
    for morpheme in word.morphemes[:-1]:
        length += len(_sound(morpheme))
        meeting.add(length)
    from_start = _common_prefix(sound, spelled)
    from_end = _common_prefix(sound[::-1], spelled[::-1])
    places, known, position = set(), set(), 0
    for place, character in enumerate(word.form[:-1], start=1):
        position += len(unicodedata.normalize("NFD", character))
        from_right = len(sound) - position
        # From the left, then from the right: the position in `spelled`, and its distance from the
        # end of the equal part. At that end only a boundary is certain: in 도와, 돕 continues.
        for same_place, margin in (
            (position, from_start - position),
            (len(spelled) - from_right, from_end - from_right),
        ):
            if margin > 0 or (margin == 0 and same_place in meeting):
                known.add(place)
                if same_place in meeting:
                    places.add(place)
                break
    return Gold(places, known, "".join(word.morphemes) != word.form)


def _sound(morpheme):
    """A morpheme as conjoining jamo; a ㄴ, ㄹ, ㅁ, ㅂ or ㅆ at its beginning is a final."""
    finals = dict(zip("ㄴㄹㅁㅂㅆ", "\u11ab\u11af\u11b7\u11b8\u11bb", strict=True))
    first = finals.get(morpheme[0], morpheme[0])
    return unicodedata.normalize("NFD", first + morpheme[1:])


def _common_prefix(one, other):
    return next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )


class Scores(NamedTuple):
    """The scores of a vocabulary."""

    precision: float
    recall: float
    f1: float
    contracted_f1: float
    pieces_per_word: float
    unknown_words: float
    unknown_hangul_words: int


def score(cutter, sentences):
    """Tokenizes every word with an `OpenedVocabulary`; the `Scores` against its morphemes."""
    counts = {False: [0, 0, 0], True: [0, 0, 0]}  # contracted -> hits, wrong, missed
    pieces_seen = words_seen = unknown = unknown_hangul = 0
    for word in (word for sentence in sentences for word in sentence):
        if not any(map(str.isalnum, word.form)):
            continue
        form = unicodedata.normalize("NFC", word.form)
        gold = gold_places(word._replace(form=form))
        pieces = cutter.pieces(form)
        words_seen += 1
        pieces_seen += len([piece for piece in pieces if piece != "\u2581"])
        places = boundaries(form, [cutter.plain(piece) for piece in pieces])
        if places is None:
            unknown += 1
            unknown_hangul += any("가" <= character <= "힣" for character in form)
            places = []
        cut = set(places) & gold.known
        hits = len(cut & gold.boundaries)
        for i, count in enumerate((hits, len(cut) - hits, len(gold.boundaries) - hits)):
            counts[gold.contracted][i] += count
    precision, recall, f1 = _f1(*counts[False])
    per_word = pieces_seen / words_seen, unknown / words_seen
    return Scores(precision, recall, f1, _f1(*counts[True])[2], *per_word, unknown_hangul)


def _f1(hits, wrong, missed):
    precision = hits / (hits + wrong) if hits + wrong else 0.0
    recall = hits / (hits + missed) if hits + missed else 0.0
    return precision, recall, 2 * hits / (2 * hits + wrong + missed) if hits else 0.0


def rows(cutters, sentences):
    """Yields a row of the table for each vocabulary."""
    for cutter in cutters:
        *shares, contracted_f1, pieces, unknown, unknown_hangul = score(cutter, sentences)
        shares = [f"{share:.3f}" for share in (*shares, contracted_f1)]
        words = [f"{pieces:.2f}", f"{unknown:.2%}", str(unknown_hangul)]
        yield [cutter.name, cutter.kind, str(cutter.size), *shares, *words]


def main(arguments):
    """Measures, and prints the table."""
    sentences = read_conllu(arguments.conllu)[HALVES[arguments.sentences]]
    cutters = [open_vocabulary(path) for path in arguments.vocabs.split(",")]
    print_table(HEADINGS, rows(cutters, sentences))


if __name__ == "__main__":
    flags = {
        "conllu": flag(str, "a treebank with morphemes as lemmas"),
        "vocabs": flag(str, "vocabularies, separated by commas"),
        "sentences": flag("all", "every second, or all", choices=HALVES),
    }
    launch(main, __doc__, flags)
