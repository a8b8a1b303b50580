"""Measures how fast a model of vectors learns from pairs, beside sentence-transformers.

    python -m benchmarks.serving.similarity_training --text=kowiki.txt --data_dir=data/KorSTS

Neighbouring sentences of a document are pairs; one pass over them by multiple negatives ranking,
from reference_model, with equal batches, rates, lengths and seeds. Each training is a process of
its own with all cores that this process may use, and they take turns, round after round. The table
shows pairs a second of training alone (ours: the median over the curve; theirs: pairs by their
trainer's own runtime), seconds of the whole process, and Spearman's correlation on KorSTS's dev
part after the pass. Needs the extras "finetune" and "bench", datasets and accelerate.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import (
    ROOT,
    argument_parser,
    child_environment,
    median_and_spread,
    positive,
    print_table,
)
from benchmarks.quality.fine_tuning import rate_of
from benchmarks.serving.similarity import cosines
from bert_tf.training.evaluation import read_results
from finetuning.datasets import DATASETS
from finetuning.metrics import score
from finetuning.readers import read_split

HEADINGS = ["training", "pairs a second", "to the other", "process s", "Spearman, dev"]

# Shorter lines are headings; longer ones are cut by both sides.
CHARACTERS = range(15, 200)
TEMPERATURE = 0.05  # 1 / 20, the scale that sentence-transformers has by default
WARM_UP = 0.1


def main():
    """Prints a line for each side."""
    parser = argument_parser(__doc__)
    parser.add_argument("--text", required=True, help="a sentence a line, a blank line between")
    parser.add_argument("--data_dir", required=True, help="KorSTS, as it is published")
    parser.add_argument("--pairs", type=positive(int), default=20_000)
    parser.add_argument("--batch_size", type=positive(int), default=128)
    parser.add_argument("--length", type=positive(int), default=64)
    parser.add_argument("--learning_rate", type=positive(float), default=1e-4)
    parser.add_argument("--rounds", type=positive(int), default=3)
    options = parser.parse_args()
    print_table(HEADINGS, rows(options))


def rows(options):
    """Yields the rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for first, second in neighbours(options.text, options.pairs):
                file.write(json.dumps({"first": first, "second": second}) + "\n")
        run(["export_model.py", *their_folder(folder)])
        found = {train_ours: [], train_theirs: []}
        for seed in range(options.rounds):
            for train, results in found.items():
                start = time.perf_counter()
                rate, spearman = train(options, seed, path, f"{folder}/{train.__name__}-{seed}")
                results.append((rate, time.perf_counter() - start, spearman))
    rates = {train: np.array(results)[:, 0] for train, results in found.items()}
    for train, results in found.items():
        (middle, spread), (ratio, _), (seconds, _) = (
            median_and_spread(values)
            for values in (
                rates[train],
                rates[train] / rates[train_theirs],
                [r[1] for r in results],
            )
        )
        yield [
            train.__name__.removeprefix("train_"), f"{middle:,.0f} ({spread:.0%})",
            f"{ratio:.2f}", f"{seconds:.0f}",
            " ".join(f"{100 * spearman:.1f}" for *_, spearman in results),
        ]  # fmt: skip


def neighbours(path, count):
    """The first `count` pairs of sentences that follow each other in a document."""
    pairs = []
    with open(path, encoding="utf-8") as lines:
        for first, second in itertools.pairwise(line.strip() for line in lines):
            if len(first) in CHARACTERS and len(second) in CHARACTERS:
                pairs.append((first, second))
            if len(pairs) == count:
                return pairs
    sys.exit(f"error: --text has {len(pairs)} pairs of sentences. Received: --pairs={count}")


def run(arguments):
    """Runs a program of the project, or this file with `-m`; returns its last printed line."""
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=ROOT, env=child_environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"error: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout.strip().rpartition("\n")[2]


def train_ours(options, seed, pairs, output):
    """One pass of run_similarity; returns (pairs a second, Spearman)."""
    run(
        [
            "run_similarity.py",
            "--task_name=jsonl",
            f"--train_file={pairs}",
            "--text_column=first",
            "--second_column=second",
            "--model_dir=reference_model",
            f"--output_dir={output}",
            "--objective=ranking",
            "--do_train",
            "--num_train_epochs=1",
            f"--train_batch_size={options.batch_size}",
            f"--learning_rate={options.learning_rate}",
            f"--warmup_proportion={WARM_UP}",
            f"--temperature={TEMPERATURE}",
            f"--max_seq_length={options.length}",
            f"--random_seed={seed}",
            "--save_summary_steps=10",
        ]
    )
    run(
        [
            "run_similarity.py",
            "--task_name=korsts",
            f"--data_dir={Path(options.data_dir).resolve()}",
            f"--model_dir={output}",
            f"--output_dir={output}/dev",
            "--do_train=false",
            "--do_eval",
            f"--max_seq_length={options.length}",
        ]
    )
    return rate_of(output), read_results(f"{output}/dev")["eval_spearman"]


def their_folder(folder):
    """The flags that export reference_model for transformers."""
    return ["--model_dir=reference_model", f"--output_dir={folder}/bert", "--format=huggingface"]


def train_theirs(options, seed, pairs, output):
    """One pass of sentence-transformers' trainer; returns (pairs a second, Spearman)."""
    scored, _ = read_split(DATASETS["korsts"], "dev", options.data_dir)
    texts = [pair.text for pair in scored] + [pair.second for pair in scored]
    settings = {
        "folder": str(pairs.parent / "bert"),
        "pairs": str(pairs),
        "texts": texts,
        "output": output,
        "length": options.length,
        "batch_size": options.batch_size,
        "learning_rate": options.learning_rate,
        "warm_up": WARM_UP,
        "scale": 1 / TEMPERATURE,
        "seed": seed,
    }
    path = Path(f"{output}.json")
    path.write_text(json.dumps(settings), encoding="utf-8")
    seconds = float(run(["-m", "benchmarks.serving.sentence_transformers_training", str(path)]))
    vectors = np.load(f"{output}/vectors.npy")
    scores = np.array([pair.label for pair in scored])
    spearman = score(("spearman",), scores, cosines(*np.split(vectors, 2)))["spearman"]
    return options.pairs / seconds, spearman


if __name__ == "__main__":
    main()
