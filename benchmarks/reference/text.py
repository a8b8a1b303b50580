"""Splits a corpus into training text and held-out text.

    python -m benchmarks.reference.text --corpus='data/*.gz' --reviews=data/ratings_train.txt \
      --output_dir=output/text

Writes train.txt, heldout.txt and report.json. Text has one sentence per line and a blank line
between documents; a review is a document. With --tasks_dir a document is omitted if one of its
lines, of at least 24 letters (`tasks.WINDOW`), is part of a text in a task's dev or test split, or
shares a passage of 48 letters with one. Some shorter common passages are found too.
"""

import json
import os

from benchmarks.common import flag, launch, positive
from benchmarks.reference.tasks import MeasuredTexts, measured_texts
from bert_common.atomic_write import atomic_write, write_json
from bert_common.progress import progress
from create_pretraining_data.engine.plain_text import TEXT_KEY, open_plain, recognise
from run_scripts.flags.paths import expand_globs

TRAIN, HELD_OUT, REPORT = "train.txt", "heldout.txt", "report.json"

# One document in this many is held out if --held_out is not given.
HELD_OUT_EVERY = 100

# The counts in the report.
COUNTED = (
    "documents", "reviews", "held_out_documents", "left_out_documents", "left_out_reviews",
)  # fmt: skip

# The header of NSMC's files, whose second column is the review.
NSMC_HEADER = ["id", "document", "label"]


FLAGS = {
    "corpus": flag(
        str,
        "text files, plain or gzip, one sentence a line, a blank line between documents: paths or "
        "globs, comma-separated",
    ),
    "held_out": flag(
        None,
        "likewise, text to measure on, whose documents the corpus loses; without it one document "
        f"in {HELD_OUT_EVERY} of the corpus",
    ),
    "reviews": flag(
        None, "more text to train on: a document a line, or NSMC's columns id, document, label"
    ),
    "repeat_reviews": flag(1, "how often the reviews are written", type=positive(int)),
    "tasks_dir": flag(None, "the Korean tasks' folders as they are published (see run_korean.sh)"),
    "output_dir": flag(str, "the folder to write to"),
}


def main(arguments):
    """Writes the two texts and the report."""
    corpus = expand_globs(arguments.corpus, "corpus")
    held_out = expand_globs(arguments.held_out, "held_out") if arguments.held_out else []
    reviews = expand_globs(arguments.reviews, "reviews") if arguments.reviews else []
    os.makedirs(arguments.output_dir, exist_ok=True)
    measured = MeasuredTexts(measured_texts(arguments.tasks_dir) if arguments.tasks_dir else ())
    train_path, held_out_path = (os.path.join(arguments.output_dir, n) for n in (TRAIN, HELD_OUT))
    counts = dict.fromkeys(COUNTED, 0)
    with atomic_write(train_path) as train, atomic_write(held_out_path) as kept:
        known, trained = set(), set()  # held-out documents; hashes of the many others
        for document in documents(held_out):
            known.add(document)
            counts["held_out_documents"] += write_document(kept, document)
        for number, document in enumerate(documents(corpus), 1):
            if document in known or any(map(measured.share_text_with, document)):
                counts["left_out_documents"] += 1
            elif not held_out and number % HELD_OUT_EVERY == 0 and hash(document) not in trained:
                known.add(document)
                counts["held_out_documents"] += write_document(kept, document)
            else:
                trained.add(hash(document))
                counts["documents"] += write_document(train, document)
        for _ in range(arguments.repeat_reviews if reviews else 0):
            for review in read_reviews(reviews):
                if measured.share_text_with(review):
                    counts["left_out_reviews"] += 1
                else:
                    counts["reviews"] += write_document(train, (review,))
    sizes = (os.path.getsize(train_path), os.path.getsize(held_out_path))
    write_json(
        os.path.join(arguments.output_dir, REPORT),
        {**counts, "megabytes": sizes[0] / 1e6, "held_out_megabytes": sizes[1] / 1e6},
    )
    print(", ".join(f"{name.replace('_', ' ')}: {count:,}" for name, count in counts.items()))


def write_document(file, document):
    """Writes a document followed by a blank line; returns 1, for counting."""
    file.write("".join(f"{line}\n" for line in (*document, "")).encode("utf-8"))
    return 1


def documents(paths):
    """Yields the documents of text files, each a tuple of its lines."""
    lines = []
    for path in paths:
        for line in read_lines(path):
            if line:
                lines.append(line)
            elif lines:
                yield tuple(lines)
                lines = []
        if lines:
            yield tuple(lines)
            lines = []


def read_reviews(paths):
    """Yields the non-empty reviews of files with one review per line or NSMC's columns."""
    for path in paths:
        has_columns = False
        for number, line in enumerate(read_lines(path)):
            fields = line.split("\t")
            if number == 0 and fields == NSMC_HEADER:
                has_columns = True
                continue
            review = fields[1].strip() if has_columns else line
            if review:
                yield review


def read_lines(path):
    """Yields the lines of a text file of any kind, without surrounding spaces.

    Each row of a table is a document, followed by a blank line.
    """
    source = recognise(path, "text")
    with (
        open_plain(source) as opened,
        progress(f"reading {os.path.basename(path)}", os.path.getsize(path), "B") as bar,
    ):
        for number, line in enumerate(opened.file, 1):
            bar.update(opened.position() - bar.n)
            if source.is_table:
                yield from (part.strip() for part in json.loads(line)[TEXT_KEY].split("\n"))
                yield ""
                continue
            yield line.decode("utf-8-sig" if number == 1 else "utf-8").strip()


if __name__ == "__main__":
    launch(main, __doc__, FLAGS)
