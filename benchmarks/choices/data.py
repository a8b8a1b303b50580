"""Writes the texts and the cut tasks that the variants share.

    python benchmarks/choices/data.py --wiki=wiki.txt --held_out=other.txt \\
        --reviews=nsmc/ratings_train.txt --tasks_dir=tasks --output_dir=work/data

text.txt: Wikipedia's documents, then each of NSMC's training reviews as a document. held_out.txt:
the documents of --held_out, except those of which half of the lines are in --wiki. nsmc-30k: the
first 30,000 training reviews, with the whole test part. sts: KorSTS's training part; as dev its
test part; as test KLUE-STS's dev part. korquad: the public file's articles, a fifth of them to
measure on. Labels and texts of test and dev parts go nowhere else.
"""

import gzip
import json
import os
import random
import shutil
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from common import argument_parser

from bert_common.atomic_write import atomic_write, write_json
from bert_common.errors import InputError
from finetuning.datasets import DATASETS
from finetuning.readers import find_file, read_split
from run_scripts.flags.paths import expand_globs

REVIEWS = 30_000
MEASURED_ARTICLES = 0.2
ARTICLE_SEED = 12345


def read_lines(paths):
    """The lines of texts, plain or gzip."""
    for path in paths:
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield line.strip()


def documents(lines):
    """Lists of lines: what blank lines part."""
    document = []
    for line in lines:
        if line:
            document.append(line)
        elif document:
            yield document
            document = []
    if document:
        yield document


def write_documents(path, parts):
    """Writes documents, a sentence a line, a blank line after each; returns how many."""
    count = 0
    with atomic_write(str(path)) as file:
        for document in parts:
            file.write("".join(f"{line}\n" for line in [*document, ""]).encode())
            count += 1
    return count


def read_reviews(path):
    """Each review with text, as a document of one line, of NSMC's file: id, document, label."""
    for number, line in enumerate(read_lines([path])):
        fields = line.split("\t")
        if number and len(fields) == 3 and fields[1].strip():
            yield [fields[1].strip()]


def write_texts(arguments, folder):
    """Writes text.txt and held_out.txt; returns their numbers of documents."""
    wiki = expand_globs(arguments.wiki, "wiki")
    held_out = expand_globs(arguments.held_out, "held_out")
    seen = frozenset(read_lines(wiki))
    kept = [d for d in documents(read_lines(held_out)) if 2 * sum(x in seen for x in d) < len(d)]
    if not kept:
        raise InputError("--held_out must hold documents that --wiki lacks. Received: none")
    articles = write_documents(folder / "wiki.partial", documents(read_lines(wiki)))
    reviews = write_documents(folder / "reviews.partial", read_reviews(arguments.reviews))
    with atomic_write(str(folder / "text.txt")) as file:
        for part in ("wiki.partial", "reviews.partial"):
            with open(folder / part, "rb") as source:
                shutil.copyfileobj(source, file)
            os.remove(folder / part)
    return {
        "articles": articles,
        "reviews": reviews,
        "held_out_articles": write_documents(folder / "held_out.txt", kept),
    }


def cut_nsmc(tasks_dir, folder):
    """Writes the folder nsmc-30k; returns its number of training reviews."""
    folder.mkdir(exist_ok=True)
    train, test = (
        find_file(f"ratings_{split}.txt", tasks_dir, "nsmc") for split in ("train", "test")
    )
    lines = Path(train).read_text(encoding="utf-8").splitlines(keepends=True)[: REVIEWS + 1]
    with atomic_write(str(folder / "ratings_train.txt")) as file:
        file.write("".join(lines).encode())
    shutil.copyfile(test, folder / "ratings_test.txt")
    return len(lines) - 1


def join_sts(tasks_dir, folder):
    """Writes the folder sts in the format of a user's own files; returns its numbers of pairs."""
    folder.mkdir(exist_ok=True)
    counts = {}
    parts = {"train": ("korsts", "train"), "dev": ("korsts", "test"), "test": ("klue-sts", "dev")}
    for name, (task, split) in parts.items():
        dataset = DATASETS[task]
        pairs, _ = read_split(dataset, split, os.path.join(tasks_dir, dataset.folder))
        rows = [f"{pair.text}\t{pair.second}\t{pair.label}\n" for pair in pairs]
        with atomic_write(str(folder / f"{name}.tsv")) as file:
            file.write("".join(["sentence1\tsentence2\tscore\n", *rows]).encode())
        counts[f"sts_{name}"] = len(rows)
    return counts


def split_korquad(tasks_dir, folder):
    """Writes the folder korquad: train.json, test.json; returns their numbers of articles."""
    folder.mkdir(exist_ok=True)
    path = find_file("KorQuAD_v1.0_dev.json", tasks_dir, "korquad")
    whole = json.loads(Path(path).read_text(encoding="utf-8"))
    articles = list(whole["data"])
    random.Random(ARTICLE_SEED).shuffle(articles)
    measured = round(MEASURED_ARTICLES * len(articles))
    for name, part in (("train", articles[measured:]), ("test", articles[:measured])):
        write_json(str(folder / f"{name}.json"), {**whole, "data": part})
    return {"korquad_train": len(articles) - measured, "korquad_test": measured}


def main():
    """Writes everything, and what there is of it into eval_results.txt."""
    parser = argument_parser(__doc__)
    parser.add_argument("--wiki", required=True, help="paths or globs, plain or gzip")
    parser.add_argument("--held_out", required=True, help="likewise")
    parser.add_argument("--reviews", required=True, help="NSMC's ratings_train.txt")
    parser.add_argument("--tasks_dir", required=True, help="the tasks' folders, as published")
    parser.add_argument("--output_dir", required=True, type=Path)
    arguments = parser.parse_args()
    folder = arguments.output_dir
    try:
        folder.mkdir(parents=True, exist_ok=True)
        counts = write_texts(arguments, folder)
        counts["nsmc_30k"] = cut_nsmc(arguments.tasks_dir, folder / "nsmc-30k")
        counts |= join_sts(arguments.tasks_dir, folder / "sts")
        counts |= split_korquad(arguments.tasks_dir, folder / "korquad")
        with atomic_write(str(folder / "eval_results.txt")) as file:  # the last file
            file.write("".join(f"{name} = {count}\n" for name, count in counts.items()).encode())
    except (InputError, OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: {error}")
    print(counts)


if __name__ == "__main__":
    main()
