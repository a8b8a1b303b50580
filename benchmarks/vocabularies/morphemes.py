"""Measures how well the tokens of vocabularies agree with morphemes.

    python -m benchmarks.vocabularies.morphemes \\
        --conllu=ko_kaist-ud-dev.conllu --vocabs=VOCAB,VOCAB,...

A VOCAB is anything that `build_vocab.py --compare` takes. The treebank has each word's morphemes
in the lemma column, joined by +, or as OrigLemma in the last column. Prints a Markdown table with
precision, recall and F1 of token boundaries against morpheme boundaries, over all words whose
spelling is the sequence of their morphemes (not 했다 = 하 + 었 + 다), and tokens per word and words
with [UNK], over all words. Words without a letter or digit are omitted. Each word is tokenized
separately.
"""

import unicodedata
from pathlib import Path
from typing import NamedTuple

from benchmarks.common import flag, launch, print_table
from bert_common.errors import InputError
from tokenization.comparison import boundaries, open_vocabulary

HEADINGS = [
    "vocabulary", "kind", "pieces", "precision", "recall", "F1", "pieces per word",
    "words with [UNK]",
]  # fmt: skip


class Word(NamedTuple):
    """A word of the treebank, in NFC."""

    form: str
    morphemes: list[str]


def read_conllu(path):
    """Reads the `Word`s of a treebank.

    Raises:
        InputError: the file is not CoNLL-U, or has no words.
    """
    words = []
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").split("\n"), start=1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 10:
            raise InputError(
                f"{path}, line {number}: a line of CoNLL-U must have 10 fields. "
                f"Received: {len(fields)}"
            )
        form, lemma = unicodedata.normalize("NFC", fields[1]), fields[2]
        for item in fields[9].split("|"):
            lemma = item.removeprefix("OrigLemma=") if item.startswith("OrigLemma=") else lemma
        # Skip ranges and empty nodes, whose number is no integer.
        if fields[0].isdigit() and any(map(str.isalnum, form)):
            words.append(Word(form, lemma.split("+")))
    if not words:
        raise InputError(f"{path} must hold a word with a letter or digit. Received: none")
    return words


def scores(vocabulary, words):
    """Tokenizes all words with an `OpenedVocabulary`; returns the numbers of a table row."""
    hits = found = wanted = pieces = unknown = 0
    for word in words:
        cut = vocabulary.pieces(word.form)
        pieces += sum(piece != "\u2581" for piece in cut)
        places = boundaries(word.form, [vocabulary.plain(piece) for piece in cut])
        unknown += places is None
        gold = boundaries(word.form, word.morphemes)
        if gold is not None:  # the word is the sequence of its morphemes
            hits += len(set(places or ()) & set(gold))
            found += len(places or ())
            wanted += len(gold)
    precision, recall = hits / max(1, found), hits / max(1, wanted)
    f1 = 2 * hits / max(1, found + wanted)
    return precision, recall, f1, pieces / len(words), unknown / len(words)


def rows(vocabularies, words):
    """Yields the table row of each vocabulary."""
    for vocabulary in vocabularies:
        *shares, per_word, unknown = scores(vocabulary, words)
        yield [
            vocabulary.name, vocabulary.kind, str(vocabulary.size),
            *(f"{share:.3f}" for share in shares), f"{per_word:.2f}", f"{unknown:.2%}",
        ]  # fmt: skip


def main(arguments):
    """Measures the vocabularies and prints the table."""
    vocabularies = [open_vocabulary(path) for path in arguments.vocabs.split(",")]
    print_table(HEADINGS, rows(vocabularies, read_conllu(arguments.conllu)))


if __name__ == "__main__":
    flags = {
        "conllu": flag(str, "a treebank with morphemes as lemmas"),
        "vocabs": flag(str, "vocabularies, separated by commas"),
    }
    launch(main, __doc__, flags)
