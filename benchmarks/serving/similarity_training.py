"""Compares how fast a model of vectors learns from pairs with sentence-transformers.

    python -m benchmarks.serving.similarity_training --text=kowiki.txt --data_dir=data/KorSTS

Neighbouring sentences of a document are pairs. Both sides train reference_model on them for one
epoch by multiple negatives ranking, with equal batches, learning rates, lengths and seeds. Each
training is a separate process with all cores that this process may use; they take turns, round
after round. The table shows pairs per second of training alone (ours: the median over the curve;
theirs: pairs by their trainer's own runtime), seconds of the whole process, and Spearman's
correlation on KorSTS's dev part. Needs the extras "finetune" and "bench", datasets and accelerate.
"""

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import (
    ROOT,
    cell,
    child_environment,
    flag,
    launch,
    median_and_spread,
    positive,
    print_table,
    ratios,
    results_of,
    run,
    take_turns,
)
from benchmarks.serving.similarity import cosines
from bert_tf.summaries.curves import read_scalars
from finetuning.datasets import DATASETS
from finetuning.metrics import score
from finetuning.readers import read_split

HEADINGS = ["training", "pairs a second", "to the other", "process s", "Spearman, dev"]

# Shorter lines are headings; longer ones are cut by both sides.
CHARACTERS = range(15, 200)
TEMPERATURE = 0.05  # 1 / 20, the default scale of sentence-transformers
WARM_UP = 0.1


def main(options):
    """Prints a line for each side."""
    print_table(HEADINGS, rows(options))


def rows(options):
    """Yields the rows of the table."""
    pairs = neighbours(options.text, options.pairs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.jsonl"
        lines = [json.dumps({"first": first, "second": second}) + "\n" for first, second in pairs]
        path.write_text("".join(lines), encoding="utf-8")
        bert = {"model_dir": "reference_model", "output_dir": f"{folder}/bert"}
        run("export_model.py", format="huggingface", **bert)
        seeds = {name: itertools.count() for name in SIDES}
        runs = {
            name: lambda name=name: timed(SIDES[name], options, next(seeds[name]), path)
            for name in SIDES
        }
        found = take_turns(runs, options.rounds)
    rates = {name: [rate for rate, *_ in results] for name, results in found.items()}
    for name, results in found.items():
        ratio, _ = median_and_spread(ratios(rates[name], rates["theirs"]))
        seconds = statistics.median(seconds for *_, seconds in results)
        scores = " ".join(f"{100 * spearman:.1f}" for _, spearman, _ in results)
        yield [name, cell(rates[name], ",.0f"), f"{ratio:.2f}", f"{seconds:.0f}", scores]


def timed(train, options, seed, path):
    """Returns the results of a training, and the seconds of its whole process."""
    start = time.perf_counter()
    found = train(options, seed, path, f"{path.parent}/{train.__name__}-{seed}")
    return *found, time.perf_counter() - start


def neighbours(path, count):
    """Reads the first `count` pairs of sentences that follow each other in a document."""
    pairs = []
    with open(path, encoding="utf-8") as lines:
        for first, second in itertools.pairwise(line.strip() for line in lines):
            if len(first) in CHARACTERS and len(second) in CHARACTERS:
                pairs.append((first, second))
            if len(pairs) == count:
                return pairs
    raise ValueError(f"{path} has only {len(pairs)} pairs of sentences")


def train_ours(options, seed, pairs, output):
    """Trains one epoch with run_similarity; returns (pairs per second, Spearman)."""
    length = {"max_seq_length": options.length}
    run(
        "run_similarity.py",
        task_name="jsonl",
        train_file=pairs,
        text_column="first",
        second_column="second",
        model_dir="reference_model",
        output_dir=output,
        objective="ranking",
        do_train=True,
        num_train_epochs=1,
        train_batch_size=options.batch_size,
        learning_rate=options.learning_rate,
        warmup_proportion=WARM_UP,
        temperature=TEMPERATURE,
        random_seed=seed,
        save_summary_steps=10,
        **length,
    )
    found = results_of(
        "run_similarity.py",
        f"{output}/dev",
        "--do_train=false",
        task_name="korsts",
        data_dir=Path(options.data_dir).resolve(),
        model_dir=output,
        do_eval=True,
        **length,
    )
    return rate_of(output), found["eval_spearman"]


def rate_of(output):
    """Returns the median of the examples per second over a training's curve."""
    rates = read_scalars(output)["throughput/examples_per_second"].values
    # Without the first half, in which lengths are compiled.
    return statistics.median(rates[len(rates) // 2 :])


def train_theirs(options, seed, pairs, output):
    """Trains one epoch with sentence-transformers; returns (pairs per second, Spearman)."""
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
    command = [sys.executable, "-m", "benchmarks.serving.sentence_transformers_training", str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env=child_environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    seconds = float(done.stdout.strip().rpartition("\n")[2])
    vectors = np.load(f"{output}/vectors.npy")
    scores = np.array([pair.label for pair in scored])
    spearman = score(("spearman",), scores, cosines(*np.split(vectors, 2)))["spearman"]
    trained = options.pairs - options.pairs % options.batch_size  # the last batch is dropped
    return trained / seconds, spearman


SIDES = {"ours": train_ours, "theirs": train_theirs}

FLAGS = {
    "text": flag(str, "a sentence a line, a blank line between documents"),
    "data_dir": flag(str, "KorSTS, as it is published"),
    "pairs": flag(20_000, type=positive(int)),
    "batch_size": flag(128, type=positive(int)),
    "length": flag(64, type=positive(int)),
    "learning_rate": flag(1e-4, type=positive(float)),
}


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=3)
