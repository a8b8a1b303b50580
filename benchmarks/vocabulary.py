"""Compares vocabularies by training the same small BERT with each of them.

    python build_vocab.py --input_file=text.txt --output_dir=work/project
    python benchmarks/vocabulary_models/usual_vocabulary.py \\
        --input_file=text.txt --output_dir=work/usual
    python benchmarks/vocabulary.py --vocabs=work/project,work/usual --text=text.txt \\
        --held_out=other.txt --reviews=ratings_train.txt --test_reviews=ratings_test.txt \\
        --work_dir=work/runs

For every seed and vocabulary run_pretraining.py trains 2 layers of width 128. The model is measured
on the held-out text, and, after fine-tuning, as a classifier of good and bad reviews (in NSMC's
format: id, document, label, tab-separated); finally new weights are fine-tuned in the same way. An
interrupted run can be resumed by the same command. Prints a Markdown table.

All vocabularies share the sentences of every example, hence the characters of every step; which
spans of characters are masked, always with all their pieces; whether the model is shown [MASK], the
span itself or random pieces; the order of examples for a seed; and every setting. A review is
truncated after the same eojeol (word between spaces). Only the lengths of rows differ, as each
vocabulary needs; padding changes no result. Nothing was tuned for any vocabulary.

A span is the smallest part of an eojeol both of whose ends are borders of pieces in all
vocabularies. Spans are masked until they have at least 15 % of an example's characters, on average
21 % in examples of 32 characters. Whole eojeols could be shared too, but are so hard to predict
that a small model, trained for minutes, learns only how frequent pieces are. These spans favour no
vocabulary, but where one has long pieces there are few borders, so a vocabulary of shorter pieces
has several pieces in a span more often.

Bits per character: the sum of -log2 of the probabilities of the masked spans' pieces, divided by
the number of characters in these spans, which is the same for all. "At once" predicts all pieces of
a span independently, as in training, which is harder the more pieces a span has. "One after
another" predicts the first pieces of all masked spans, shows them, predicts the second ones, and
so on: the chain rule, with independence only across spans, although the model was not trained for
that. Both reveal how many [MASK]s a span has, which is worth more with short pieces; the bits for
that number, by its frequencies in the training text, are a separate column, to be added. "By
frequency alone" is what the pieces would cost without a model.

[UNK] is easy to predict but represents no word, so an eojeol for which any vocabulary has one is
never masked; the shares of such eojeols are printed. This leaves out words that are hard for the
vocabularies that can represent them.
"""

import dataclasses
import hashlib
import json
import os
import statistics
import sys
from pathlib import Path

from common import ENVIRONMENT, argument_parser, print_table, whole_numbers

os.environ.update(ENVIRONMENT)  # before TensorFlow is imported

from vocabulary_models.contest import Contest, Settings
from vocabulary_models.text import masked_characters

from tokenization import InputError

FILES = ("text", "held_out", "reviews", "test_reviews")


class Results:
    """A file of results, a JSON line for each part of a run; finished parts are not repeated.

    Args:
        path: the file; its first line holds the conditions.
        conditions: a dict of everything that determines the results.

    Raises:
        InputError: the file was written under other conditions.
    """

    def __init__(self, path, conditions):
        self.path = Path(path)
        if not self.path.exists():
            self._write(conditions)
        first, *self.lines = map(json.loads, self.path.read_text(encoding="utf-8").splitlines())
        differing = sorted(k for k, v in {**first, **conditions}.items() if first.get(k) != v)
        if differing:
            raise InputError(
                f"{path} must hold results of the same {', '.join(differing)}. Received: "
                f"{first.get(differing[0])!r} there, {conditions.get(differing[0])!r} now"
            )

    def do(self, part, vocabulary, seed, measure):
        """Calls `measure`, a function without arguments, unless its results are in the file."""
        key = {"part": part, "vocabulary": vocabulary, "seed": seed}
        if any(key.items() <= line.items() for line in self.lines):
            return
        line = {**key, **measure()}
        self._write(line)
        self.lines.append(line)
        print(json.dumps(line, ensure_ascii=False), file=sys.stderr, flush=True)

    def numbers(self, part, vocabulary, name):
        """One of the results, for every seed."""
        key = {"part": part, "vocabulary": vocabulary}
        return [line[name] for line in self.lines if key.items() <= line.items()]

    def _write(self, line):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def run(contest, results, seeds):
    """Runs the parts that are missing: first pre-training and its fine-tuning, for all seeds."""
    for seed in seeds:
        for name in contest.folders:
            results.do("pretraining", name, seed, lambda n=name, s=seed: contest.pretrain(n, s))
            results.do("reviews", name, seed, lambda n=name, s=seed: contest.finetune(n, s, True))
    for seed in seeds:
        for name in contest.folders:
            results.do("from_new", name, seed, lambda n=name, s=seed: contest.finetune(n, s, False))


HEADINGS = [
    "vocabulary", "pieces per eojeol", "bits per character, at once", "one after another",
    "by frequency alone", "number of pieces", "accuracy", "without pre-training", "s/step",
]  # fmt: skip


def table_rows(contest, results):
    """Yields a row for each vocabulary: means over the seeds with standard deviations."""
    for name in contest.folders:
        pretraining = [
            mean_and_deviation(results.numbers("pretraining", name, measure), "{:.3f}")
            for measure in ("bits_at_once", "bits_in_turn")
        ]
        by_frequency = [f"{bits:.3f}" for bits in reversed(contest.by_frequency[name])]
        accuracies = [
            mean_and_deviation(results.numbers(part, name, "accuracy"), "{:.2%}")
            for part in ("reviews", "from_new")
        ]
        seconds = min(results.numbers("pretraining", name, "seconds"))
        pieces = f"{contest.shares[name][1].pieces:.2f}"
        yield [name, pieces, *pretraining, *by_frequency, *accuracies, f"{seconds:.3g}"]


def mean_and_deviation(numbers, form):
    """Mean and standard deviation as text; of a single number only that number."""
    mean = form.format(statistics.mean(numbers))
    if len(numbers) == 1:
        return mean
    return f"{mean} ± {form.format(statistics.stdev(numbers))}"


def notes(contest, seeds):
    """Yields notes on what was measured, and on what."""
    settings, held_out = contest.settings, contest.held_out
    masked = sum(len(example.masked) for example in held_out)
    eojeols = sum(len(example.eojeols) for example in contest.examples) / len(contest.examples)
    yield (
        f"{settings.preset}, {settings.steps} steps of {settings.batch} examples of at most "
        f"{settings.characters} characters ({eojeols:.1f} eojeols on average), {len(seeds)} seeds; "
        "means ± standard deviations."
    )
    yield (
        f"Bits per character: {masked:,} spans of {masked_characters(held_out):,} characters, in "
        f"{len(held_out):,} held-out examples."
    )
    yield (
        f"Accuracy: {len(contest.test_reviews):,} reviews, after {settings.epochs} passes over "
        f"{len(contest.reviews):,}."
    )
    for name, (text, others, reviews) in contest.shares.items():
        limit, size = contest.limits[name], contest.cuts[name].tokenizer.vocab_size
        yield (
            f"{name}: {size:,} pieces; rows of {limit.length}, {limit.predictions} predictions; "
            f"eojeols with [UNK]: {text.unknown:.2%} of the text, {others.unknown:.2%} of the "
            f"held-out text, {reviews.unknown:.2%} of the test reviews ({reviews.pieces:.2f} "
            "pieces per eojeol there)."
        )
    yield "s/step: of the fastest tenth of all windows of steps, as the machine was shared."


def digests(paths):
    """A hash of the content of each file, or of the vocabulary in each folder."""
    hashes = {}
    for name, path in paths.items():
        file = Path(path) / "vocab.txt" if os.path.isdir(path) else Path(path)
        hashes[f"content of {name}"] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return hashes


def parse(arguments=None):
    """The command line."""
    parser = argument_parser(__doc__)
    parser.add_argument("--vocabs", required=True, help="tokenizers' folders, comma-separated")
    parser.add_argument("--text", required=True, help="to pre-train on; blank lines part documents")
    parser.add_argument("--held_out", required=True, help="text; lines of --text are left out")
    parser.add_argument("--reviews", required=True)
    parser.add_argument("--test_reviews", required=True)
    parser.add_argument("--work_dir", required=True)
    parser.add_argument("--seeds", type=whole_numbers, default=[1, 2, 3])
    for field in dataclasses.fields(Settings):
        # The files have the same names, so these flags get a suffix.
        flag = f"--{field.name}" if field.name not in FILES else f"--{field.name}_used"
        parser.add_argument(flag, dest=f"set_{field.name}", type=field.type, default=field.default)
    return parser.parse_args(arguments)


def main():
    """Runs what is missing, and prints the table with the notes under it."""
    arguments = parse()
    names = [field.name for field in dataclasses.fields(Settings)]
    settings = Settings(**{name: getattr(arguments, f"set_{name}") for name in names})
    paths = arguments.vocabs.split(",")
    folders = {Path(path).name: path for path in paths}
    files = {name: getattr(arguments, name) for name in FILES}
    try:
        if len(folders) < len(paths):
            raise InputError(f"--vocabs must be folders of different names. Received: {paths}")
        os.makedirs(arguments.work_dir, exist_ok=True)
        conditions = {**dataclasses.asdict(settings), **digests({**folders, **files})}
        results = Results(Path(arguments.work_dir) / "results.jsonl", conditions)
        contest = Contest(folders, files, settings, arguments.work_dir)
        run(contest, results, arguments.seeds)
    except (InputError, OSError, UnicodeDecodeError) as error:
        sys.exit(f"error: {error}")
    print_table(HEADINGS, table_rows(contest, results))
    print("\n".join(f"* {note}" for note in notes(contest, arguments.seeds)))


if __name__ == "__main__":
    main()
