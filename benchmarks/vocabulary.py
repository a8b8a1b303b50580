"""Trains the same small BERT with several vocabularies, to see which of them helps it.

    python build_vocab.py --input_file=text.txt --output_dir=work/project
    python benchmarks/usual_vocabulary.py --input_file=text.txt --output_dir=work/usual
    python benchmarks/vocabulary.py --vocabs=work/project,work/usual --text=text.txt \\
        --held_out=other.txt --reviews=ratings_train.txt --test_reviews=ratings_test.txt \\
        --work_dir=work/runs

For every seed and vocabulary run_pretraining.py trains 2 layers of 128; what it learned is
measured on the held-out text, then by telling good from bad reviews (NSMC's format: id, document,
label, separated by tabs) after the same fine-tuning; at last the same fine-tuning starts from new
weights. A run that was stopped goes on where it was. Prints a Markdown table.

What is the same for all vocabularies: the sentences of every example, so the characters of every
step; which eojeols (words between spaces) are masked, all their pieces at once; whether [MASK],
the word itself or random pieces are shown in training; the order of examples for a seed; every
setting. A review is cut behind the same eojeol. Only the lengths of rows differ, by what each
vocabulary needs; padding changes no result. Nothing was tuned for any of them.

Bits per character: the pieces of the masked eojeols cost -log2 of their probability, divided by
the characters of these eojeols, which are the same for all. "At once" predicts all pieces of an
eojeol independently, as in training, which is the harder the more pieces an eojeol has. "One
after another" predicts the first pieces of all masked eojeols, shows them, predicts the second
ones, and so on: a chain rule, independent only across eojeols, though not what was trained. Both
are told how many [MASK]s an eojeol has, which says more where eojeols are cut finely; what it
would cost to say it, by how often eojeols have so many pieces in the learning text, is a column
of its own, to be added. "By frequency alone" is what the pieces would cost without a model.

[UNK] would be cheap to predict and tells no word: an eojeol in which any of the vocabularies has
one is never masked, for none of them; the shares are printed. That leaves out words which are
hard for those that can write them.
"""

import argparse
import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import random
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import ENVIRONMENT, print_table, whole_numbers

os.environ.update(ENVIRONMENT)  # before TensorFlow is imported

from tqdm import tqdm
from vocabulary_text import (
    Cuts,
    choose_masked,
    find_limits,
    read_eojeols,
    read_reviews,
    record_format,
    row,
    shares,
    spans,
    training_examples,
)
from vocabulary_training import (
    checkpoint_loss,
    finetune,
    frequency_bits,
    measure_bits,
    pretraining_seconds,
    review_arrays,
)

from bert_tf.checkpoint_files import exists
from bert_tf.config import BertConfig
from create_pretraining_data.encoding import encode_record
from create_pretraining_data.tfrecord import frame
from run_scripts.pretrain import main as run_pretraining
from tokenization import InputError, load_tokenizer

TEXT_SEED = 12345  # which words are masked; not a seed of the models
FILES = ("text", "held_out", "reviews", "test_reviews")


@dataclasses.dataclass(frozen=True)
class Settings:
    """What decides the results beside the files; the defaults are those of the README's table.

    Attributes:
        preset: a name of `BertConfig.from_preset`.
        characters: of an example at most, spaces among them.
        batch: examples of an update. After as many steps of 16 examples the masked words cost
            what they cost by frequency alone: the model had not begun to read the others.
        steps: updates of pre-training.
        rate: what the learning rate's warm-up, a tenth of the steps, aims at.
        held_out: examples that bits per character are measured on.
        reviews: for fine-tuning, the first of their file; an empty one does not count.
        test_reviews: likewise.
        review_batch, epochs, review_rate: of fine-tuning.
        review_length: pieces at most, in every vocabulary.
    """

    preset: str = "tiny"
    characters: int = 160
    batch: int = 64
    steps: int = 2000
    rate: float = 1e-3
    held_out: int = 1500
    reviews: int = 30_000
    test_reviews: int = 30_000
    review_batch: int = 64
    epochs: int = 2
    review_rate: float = 5e-4
    review_length: int = 64


class Results:
    """Measured numbers, a JSON line for each part of a run; what is there is not done again.

    Args:
        path: the file; its first line holds what decides the numbers.
        conditions: a dict.

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
        """Calls `measure`, a function without arguments, unless its numbers are there."""
        key = {"part": part, "vocabulary": vocabulary, "seed": seed}
        if any(key.items() <= line.items() for line in self.lines):
            return
        line = {**key, **measure()}
        self._write(line)
        self.lines.append(line)
        print(json.dumps(line, ensure_ascii=False), file=sys.stderr, flush=True)

    def numbers(self, part, vocabulary, name):
        """A number of every seed."""
        key = {"part": part, "vocabulary": vocabulary}
        return [line[name] for line in self.lines if key.items() <= line.items()]

    def _write(self, line):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


class Contest:
    """The texts, as all vocabularies are given them.

    Args:
        folders: of tokenizers, by name.
        files: the paths of text, held_out, reviews, test_reviews.
        settings: `Settings`.
        work_dir: where records, configurations and checkpoints are kept.
    """

    def __init__(self, folders, files, settings, work_dir):
        self.folders, self.settings, self.work_dir = folders, settings, Path(work_dir)
        self.cuts = {name: Cuts(load_tokenizer(folder)) for name, folder in folders.items()}
        all_cuts = list(self.cuts.values())
        documents = read_eojeols(files["text"])
        self.limits = find_limits(documents, all_cuts, settings.characters)
        self.examples = training_examples(
            documents,
            all_cuts,
            settings.characters,
            self.limits,
            settings.steps * settings.batch,
            TEXT_SEED,
        )
        seen = frozenset(Path(files["text"]).read_text(encoding="utf-8").split("\n"))
        others = read_eojeols(files["held_out"], without=seen)
        texts = list(spans(others, all_cuts, settings.characters, self.limits))
        rng = random.Random(TEXT_SEED)
        rng.shuffle(texts)
        chosen = texts[: settings.held_out]
        self.held_out = [choose_masked(span, all_cuts, rng, self.limits) for span in chosen]
        self.reviews, self.test_reviews = (
            read_reviews(files[name], getattr(settings, name), all_cuts, settings.review_length)
            for name in ("reviews", "test_reviews")
        )
        self.limits = dict(zip(self.cuts, self.limits, strict=True))
        self.by_frequency = {name: self._by_frequency(cuts) for name, cuts in self.cuts.items()}
        self.shares = {
            name: (
                shares(documents, cuts),
                shares(others, cuts),
                shares([eojeols for eojeols, _ in self.test_reviews], cuts),
            )
            for name, cuts in self.cuts.items()
        }

    def _by_frequency(self, cuts):
        """Bits per character of the held-out text's masked eojeols: number of pieces, pieces."""
        learned, asked = (
            [example.eojeols[n] for example in examples for n in example.masked]
            for examples in (self.examples, self.held_out)
        )
        numbers = collections.Counter(len(cuts[eojeol]) for eojeol in learned)
        pieces = collections.Counter(piece for eojeol in learned for piece in cuts[eojeol])
        said = [len(cuts[eojeol]) for eojeol in asked]
        of_number = frequency_bits(numbers, said, max([*numbers, *said]))
        said = [piece for eojeol in asked for piece in cuts[eojeol]]
        of_pieces = frequency_bits(pieces, said, cuts.tokenizer.vocab_size)
        characters = sum(map(len, asked))
        return of_number / characters, of_pieces / characters

    def config(self, name):
        """The model's sizes."""
        size = self.cuts[name].tokenizer.vocab_size
        return BertConfig.from_preset(self.settings.preset, vocab_size=size)

    def write(self, name):
        """Records of the training examples and the model's configuration; returns the paths."""
        records, config = (self.work_dir / f"{name}{end}" for end in (".tfrecord", ".json"))
        config.write_text(json.dumps(dataclasses.asdict(self.config(name))), encoding="utf-8")
        if not records.exists():  # it appears under its name when it is complete
            rng, limit = random.Random(TEXT_SEED), self.limits[name]
            examples = tqdm(self.examples, desc=f"records, {name}", unit="record", disable=None)
            rows = (row(example, self.cuts[name], limit, rng) for example in examples)
            partial = records.with_suffix(".partial")
            with open(partial, "wb") as file:
                file.writelines(frame(encode_record(r, record_format(limit))) for r in rows)
            partial.rename(records)
        return records, config

    def checkpoint(self, name, seed):
        """The folder that pre-training writes to."""
        return self.work_dir / f"{name}-{seed}"

    def pretrain(self, name, seed):
        """Runs run_pretraining.py, then measures on the held-out text."""
        records, config = self.write(name)
        settings, limit, folder = self.settings, self.limits[name], self.checkpoint(name, seed)
        flags = {
            "bert_config_file": config,
            "input_file": records,
            "output_dir": folder,
            "do_train": "true",
            "max_seq_length": limit.length,
            "max_predictions_per_seq": limit.predictions,
            "train_batch_size": settings.batch,
            "num_train_steps": settings.steps,
            "num_warmup_steps": settings.steps // 10,
            "learning_rate": settings.rate,
            "random_seed": seed,
            "save_checkpoints_steps": max(1, settings.steps // 10),
            "keep_checkpoint_max": 1,
            "save_summary_steps": max(1, settings.steps // 100),
            "tokenizer_dir": self.folders[name],
        }
        arguments = ["run_pretraining", *(f"--{key}={value}" for key, value in flags.items())]
        with contextlib.redirect_stdout(sys.stderr):
            status = run_pretraining(arguments)
        checkpoint = folder / f"model.ckpt-{settings.steps}"
        if status or not exists(str(checkpoint)):
            sys.exit("stopped: the same command goes on from there")
        loss_of = checkpoint_loss(self.config(name), checkpoint, settings.batch)
        bits = measure_bits(loss_of, self.held_out, self.cuts[name], limit)
        return {
            "bits_at_once": bits.at_once,
            "bits_in_turn": bits.in_turn,
            "seconds": pretraining_seconds(folder, settings.batch),
        }

    def finetune(self, name, seed, pretrained):
        """Fine-tunes the pre-trained model, or a new one; the accuracy on the test reviews."""
        settings, cuts = self.settings, self.cuts[name]
        checkpoint = self.checkpoint(name, seed) / f"model.ckpt-{settings.steps}"
        accuracy = finetune(
            self.config(name),
            checkpoint if pretrained else None,
            review_arrays(self.reviews, cuts, settings.review_length),
            review_arrays(self.test_reviews, cuts, settings.review_length),
            settings,
            seed,
        )
        return {"accuracy": accuracy}


def run(contest, results, seeds):
    """Does what is missing; the first part of every seed before any second one."""
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
    """A row for each vocabulary: means over the seeds with their standard deviations."""
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
    """Both as text; of a single number only that."""
    mean = form.format(statistics.mean(numbers))
    if len(numbers) == 1:
        return mean
    return f"{mean} ± {form.format(statistics.stdev(numbers))}"


def notes(contest, seeds):
    """Lines that say what was measured on what."""
    settings, held_out = contest.settings, contest.held_out
    words = [example.eojeols[n] for example in held_out for n in example.masked]
    eojeols = sum(len(example.eojeols) for example in contest.examples) / len(contest.examples)
    yield (
        f"{settings.preset}, {settings.steps} steps of {settings.batch} examples of at most "
        f"{settings.characters} characters ({eojeols:.1f} eojeols on average), {len(seeds)} seeds; "
        "means ± standard deviations."
    )
    yield (
        f"Bits per character: {len(words):,} eojeols of {sum(map(len, words)):,} characters, in "
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
    """What the content of each file, or of the vocabulary in each folder, hashes to, by name."""
    found = {}
    for name, path in paths.items():
        file = Path(path) / "vocab.txt" if os.path.isdir(path) else Path(path)
        found[f"content of {name}"] = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    return found


def parse(arguments=None):
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vocabs", required=True, help="tokenizers' folders, comma-separated")
    parser.add_argument("--text", required=True, help="to pre-train on, documents apart")
    parser.add_argument("--held_out", required=True, help="text; lines of --text are left out")
    parser.add_argument("--reviews", required=True)
    parser.add_argument("--test_reviews", required=True)
    parser.add_argument("--work_dir", required=True)
    parser.add_argument("--seeds", type=whole_numbers, default=[1, 2, 3])
    for field in dataclasses.fields(Settings):
        # The same names as files have, for how many of them.
        flag = f"--{field.name}" if field.name not in FILES else f"--{field.name}_used"
        parser.add_argument(flag, dest=f"set_{field.name}", type=field.type, default=field.default)
    return parser.parse_args(arguments)


def main():
    """Does what is missing, prints the table and the notes under it."""
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
