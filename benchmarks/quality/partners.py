"""Shows the sentence that each model finds nearest to every sentence of some pairs.

    python -m benchmarks.quality.partners --models=reference_model,reference_vectors

--pairs holds two sentences of about the same meaning per line, separated by a tab. The models and
TF-IDF on characters compare each sentence with all others of the file. Prints the nearest sentence,
marked ✓ if it is the partner, and how many partners are the nearest, and among the nearest three.
"""

import csv
from pathlib import Path

import numpy as np

from benchmarks.common import launch, print_table
from finetuning.similarity.lexical import search_tf_idf
from finetuning.similarity.ranking import search

PAIRS = Path(__file__).with_suffix(".tsv")
NEAR = 3


def read_pairs(path):
    """Reads the sentences, pair after pair, and the index of each sentence's partner."""
    rows = list(csv.reader(Path(path).read_text(encoding="utf-8").splitlines(), delimiter="\t"))
    sentences = [sentence for first, second in rows for sentence in (first, second)]
    return sentences, [index ^ 1 for index in range(len(sentences))]


def others(found):
    """Removes each of N texts from the texts found for it; returns int [N, M - 1]."""
    return np.array([row[row != index] for index, row in enumerate(found)])


def rankings(models, sentences):
    """Returns name of a ranking -> indices of the other sentences, nearest first, [N, N - 1]."""
    from korean_bert import load_model

    found = {}
    for name in models.split(","):
        vectors = load_model(name).embed(sentences)
        found[name] = others(search(vectors, vectors, len(sentences), normalize=True).places)
    found["TF-IDF"] = by_characters(sentences)
    return found


def by_characters(sentences):
    """Returns the indices of the other sentences, nearest first, by TF-IDF learned from these."""
    rows = []
    for index, sentence in enumerate(sentences):
        rest = np.delete(np.arange(len(sentences)), index)
        found = search_tf_idf([sentence], [sentences[i] for i in rest], len(rest))
        rows.append(rest[found.places[0]])
    return np.array(rows)


def shown(sentences, nearest, partner):
    """Returns the nearest sentence, marked if it is the partner."""
    return sentences[nearest] + (" ✓" if nearest == partner else "")


def main(options):
    """Prints the nearest sentences, then the counts."""
    sentences, partners = read_pairs(options.pairs)
    ranked = rankings(options.models, sentences)
    rows = [
        [sentence, *(shown(sentences, rank[index, 0], partner) for rank in ranked.values())]
        for index, (sentence, partner) in enumerate(zip(sentences, partners, strict=True))
    ]
    print_table(["sentence", *ranked], rows)
    counts = []
    for name, rank in ranked.items():
        places = [list(row).index(partner) for row, partner in zip(rank, partners, strict=True)]
        counts.append([name, f"{places.count(0)}", f"{sum(place < NEAR for place in places)}"])
    print_table(["", "the partner is the nearest", f"among the nearest {NEAR}"], counts)


if __name__ == "__main__":
    launch(main, __doc__, {"models": str, "pairs": PAIRS})
