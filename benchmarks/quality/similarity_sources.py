"""Writes the files from which reference_vectors was trained, using published data.

    python -m benchmarks.quality.similarity_sources --question_pair=data/kor_pair_train.csv \\
        --parakqc=data/paraKQC_v1.txt --questions=data/KorQuAD_v1.0_dev.json --articles=100 \\
        --output_dir=data/sources

question_pair.tsv: the pairs of github.com/songys/Question_pair that ask the same (is_duplicate is
0 there). parakqc.tsv: triples of github.com/warnikchow/paraKQC, a wording of a question or command,
a different wording of it, and a wording of a different one of the same topic and kind;
parakqc_pairs.tsv lacks the third text. questions.tsv: a question of the first --articles, the
sentence with its answer, and a sentence of a different paragraph of the article;
questions_pairs.tsv lacks the third text. All are drawn with fixed seeds. paragraphs.json: the same
articles, whose questions run_similarity pairs with their whole paragraphs.
"""

import csv
import io
import random
import re
from pathlib import Path

from benchmarks.common import launch, write_results
from bert_common.atomic_write import atomic_write, write_json
from bert_common.folders import read_bytes
from bert_common.json_text import read_json

WORDINGS = 10  # per question or command in ParaKQC
PARTNERS = 3  # other wordings that each wording is paired with
LONGEST = 110  # maximum characters kept of a sentence, around the answer
SEEDS = {"parakqc": 1, "questions": 2}

_END = re.compile(r"[.?!][\"”')]*\s+")


def same_questions(path):
    """Reads the pairs of Question_pair that ask the same in different words."""
    rows = csv.DictReader(io.StringIO(Path(path).read_text(encoding="utf-8-sig")))
    same = [
        (row["question1"], row["question2"]) for row in rows if row["is_duplicate"].strip() == "0"
    ]
    return [pair for pair in same if len({re.sub(r"\W", "", text) for text in pair}) == 2]


def wordings(path):
    """Makes the triples of ParaKQC."""
    draw = random.Random(SEEDS["parakqc"])
    lines = [line.split("\t") for line in Path(path).read_text(encoding="utf-8").split("\n")]
    lines = [line for line in lines if len(line) == 3]
    groups = [lines[start : start + WORDINGS] for start in range(0, len(lines), WORDINGS)]
    alike = {}
    for number, group in enumerate(groups):
        kinds = {(topic, kind) for topic, kind, _ in group}
        assert len(kinds) == 1 and len(group) == WORDINGS, f"line {number * WORDINGS + 1}"
        alike.setdefault(kinds.pop(), []).append(number)
    triples = []
    for number, group in enumerate(groups):
        texts = [text for *_, text in group]
        draw.shuffle(texts)
        others = [n for n in alike[tuple(group[0][:2])] if n != number]
        for first in range(WORDINGS):
            for step in range(1, PARTNERS + 1):
                other = groups[draw.choice(others)]
                triple = texts[first], texts[(first + step) % WORDINGS]
                triples.append((*triple, draw.choice([text for *_, text in other])))
    draw.shuffle(triples)
    return triples


def sentences(text):
    """Returns (first character, end) of each sentence of a text."""
    cuts = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    return [(start, end) for start, end in zip(cuts[:-1], cuts[1:], strict=True) if end > start]


def about(text, start, end, place):
    """Returns at most `LONGEST` characters of a sentence, around a place."""
    if end - start > LONGEST:
        start = max(start, min(place - LONGEST // 2, end - LONGEST))
        end = start + LONGEST
    return text[start:end]


def questions(path, count):
    """Makes triples: question, sentence with its answer, sentence of a different paragraph."""
    draw, triples = random.Random(SEEDS["questions"]), []
    for article in read_json(read_bytes(path), path)["data"][:count]:
        texts = [paragraph["context"] for paragraph in article["paragraphs"]]
        for number, paragraph in enumerate(article["paragraphs"]):
            text = paragraph["context"]
            for entry in paragraph["qas"]:
                place = entry["answers"][0]["answer_start"]
                start, end = next(s for s in sentences(text) if s[0] <= place < s[1])
                chosen = [n for n in range(len(texts)) if n != number]
                other = draw.choice(chosen) if chosen else number
                left = [s for s in sentences(texts[other]) if (other, s) != (number, (start, end))]
                first, last = draw.choice(left or [(0, 60)])
                wrong = about(texts[other], first, last, (first + last) // 2)
                triples.append((entry["question"], about(text, start, end, place), wrong))
    draw.shuffle(triples)
    return triples


def write(path, rows):
    """Writes rows of one to three texts; returns the number of rows."""
    header = ("text", "second", "third")[: len(rows[0])]
    lines = ("\t".join(" ".join(cell.split()) for cell in row) for row in (header, *rows))
    with atomic_write(str(path)) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())
    return len(rows)


def main(options):
    """Writes the files, then their numbers of rows into eval_results.txt."""
    options.output_dir.mkdir(parents=True, exist_ok=True)
    made = {"question_pair": same_questions(options.question_pair)}
    for name, triples in (
        ("parakqc", wordings(options.parakqc)),
        ("questions", questions(options.questions, options.articles)),
    ):
        made |= {name: triples, f"{name}_pairs": [triple[:2] for triple in triples]}
    articles = read_json(read_bytes(options.questions), options.questions)["data"]
    cut = {"version": "KorQuAD_v1.0_dev", "data": articles[: options.articles]}
    write_json(options.output_dir / "paragraphs.json", cut)
    counts = {n: write(options.output_dir / f"{n}.tsv", rows) for n, rows in made.items()}
    write_results(options.output_dir, counts)


if __name__ == "__main__":
    flags = {
        "question_pair": str,
        "parakqc": str,
        "questions": str,
        "articles": 100,
        "output_dir": Path,
    }
    launch(main, __doc__, flags)
