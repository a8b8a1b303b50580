"""Measures requests a second of an exported classifier, beside transformers with the same weights.

    python -m benchmarks.serving.requests --sizes=mini,base --batches=1,32

A request is a batch of texts, answered with probabilities; tokenization is part of it. Both exports
of one model, whose weights are random, are loaded in processes of their own that take turns, round
after round, on all cores that this process may use. Their probabilities must be equal. The
transformers side needs the extra "bench".
"""

import json
import os
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
    one_of,
    print_table,
    whole_numbers,
)

MODULE = "benchmarks.serving.requests"  # this file, as its own child processes run it

KINDS = ("saved_model", "transformers")
MAX_LENGTH = 512
LINES = {"sentences": 1, "paragraphs": 8}  # how many lines of the file a text has
SECONDS = 1.0  # about how long a contender runs in a round


def main():
    """Exports the models, measures, prints a table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--sizes", type=one_of("tiny", "mini", "base"), default=["mini", "base"])
    parser.add_argument("--batches", type=whole_numbers, default=[1, 32])
    parser.add_argument("--texts", type=one_of(*LINES), default=list(LINES))
    parser.add_argument("--file", default=str(ROOT / "sample_corpus/heldout.txt"))
    parser.add_argument("--tokenizer_dir", default=str(ROOT / "tests/data/sample_tokenizer"))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--contenders", type=one_of(*KINDS), default=list(KINDS))
    options = parser.parse_args()
    ratios = [f"{options.contenders[0]} to {name}" for name in options.contenders[1:]]
    headings = ["size", "texts", "batch", *options.contenders, *ratios]
    print("Requests a second: median over rounds (spread), and the median of their ratios.\n")
    print_table(headings, rows(options))


def rows(options):
    """Yields a row of the table for every size, kind of text and batch."""
    texts = {name: read_texts(options.file, LINES[name]) for name in options.texts}
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            export(size, options.tokenizer_dir, folder, *options.contenders)
            running = [start(kind, folder, texts) for kind in options.contenders]
            for name in texts:
                for batch in options.batches:
                    speeds = measure(running, name, batch, options.rounds)
                    cells = [f"{m:.1f} ({s:.0%})" for m, s in map(median_and_spread, speeds)]
                    ratios = [np.median(np.divide(speeds[0], other)) for other in speeds[1:]]
                    yield size, name, str(batch), *cells, *(f"{ratio:.2f}" for ratio in ratios)
            for process in running:
                process.stdin.close()
                process.wait()


def read_texts(path, lines):
    """Texts of some lines each, without blank ones."""
    content = [line for line in Path(path).read_text(encoding="utf-8").splitlines() if line]
    return [" ".join(content[i : i + lines]) for i in range(0, len(content), lines)]


def export(size, tokenizer_dir, folder, *kinds):
    """Writes a classifier with random weights as the contenders `kinds` read it."""
    code = f"import sys; from {MODULE} import write_exports; write_exports(*sys.argv[1:])"
    subprocess.run(
        [sys.executable, "-c", code, size, tokenizer_dir, folder, *kinds],
        env=child_environment(),
        check=True,
    )


def write_exports(size, tokenizer_dir, folder, *kinds):
    """The same in this process, which then holds TensorFlow."""
    from bert_tf import BertConfig, BertModel
    from finetuning.classification.head import SequenceClassifier
    from model_formats.huggingface.export import export as export_huggingface
    from model_formats.loaded_model import LoadedModel
    from model_formats.saved_model.export import export as export_saved_model
    from tokenization import load_tokenizer

    tokenizer = load_tokenizer(tokenizer_dir)
    config = BertConfig.from_preset(size, vocab_size=tokenizer.vocab_size, initializer_range=0.05)
    settings = {"task_name": "tsv", "task_type": "single_label", "labels": "negative,positive"}
    loaded = LoadedModel(
        model=SequenceClassifier(BertModel(config), 2),
        task="classification",
        model_type="bert",
        config=config,
        tokenizer=tokenizer,
        labels=("negative", "positive"),
        missing=(),
        settings={**settings, "max_seq_length": MAX_LENGTH},
        trained_positions=None,
        source="random weights",
        folder=folder,
    )
    writers = {"saved_model": export_saved_model, "transformers": export_huggingface}
    for kind in kinds:
        os.makedirs(os.path.join(folder, kind))
        writers[kind](loaded, os.path.join(folder, kind))


def start(kind, folder, texts):
    """A process that has loaded an export; it runs the requests that it is told to."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            MODULE,
            "--serve",
            kind,
            os.path.join(folder, kind),
            json.dumps(texts),
        ],  # fmt: skip
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=child_environment(),
        text=True,
    )


def measure(running, texts, batch, rounds):
    """Requests a second in every round, for each process; the first, untimed round compares."""
    shares = []
    for process in running:
        answer = ask(process, texts, batch, 0)
        shares.append(np.array(answer["probabilities"]))
    for other in shares[1:]:
        if not np.allclose(shares[0], other, atol=1e-4):
            sys.exit(f"error: probabilities must be equal. Received: {shares[0][0]}, {other[0]}")
    speeds = [[] for _ in running]
    for _ in range(rounds):
        for process, of_process in zip(running, speeds, strict=True):
            answer = ask(process, texts, batch, SECONDS)
            of_process.append(answer["requests"] / answer["seconds"])
    return speeds


def ask(process, *request):
    """A line to a process, and its answer."""
    print(json.dumps(request), file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def serve(kind, folder, texts):
    """Answers requests: [name of texts, batch, seconds]; 0 seconds returns probabilities."""
    load = {"saved_model": load_saved_model, "transformers": load_transformers}[kind]
    predict, texts = load(folder), json.loads(texts)
    for line in sys.stdin:
        name, batch, seconds = json.loads(line)
        chosen = np.resize(texts[name], -(-len(texts[name]) // batch) * batch)
        batches = [part.tolist() for part in np.split(chosen, len(chosen) // batch)]
        if not seconds:
            found = [predict(part) for part in batches]
            print(json.dumps({"probabilities": np.concatenate(found).tolist()}), flush=True)
            continue
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds or count < 2:
            predict(batches[count % len(batches)])
            count += 1
        answer = {"requests": count, "seconds": time.perf_counter() - start}
        print(json.dumps(answer), flush=True)


def load_saved_model(folder):
    """A function from texts to probabilities, as a server calls the SavedModel."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - its operations

    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]

    def predict(texts):
        return signature(text=tf.constant(texts))["probabilities"].numpy()

    predict.model = model  # its functions work while it exists
    return predict


def load_transformers(folder):
    """The same by transformers and torch."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from bert_common.cpu import available_cores

    torch.set_num_threads(available_cores())
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    options = {"padding": True, "truncation": True, "max_length": MAX_LENGTH}

    def predict(texts):
        with torch.inference_mode():
            logits = model(**tokenizer(texts, return_tensors="pt", **options)).logits
            return logits.softmax(dim=-1).numpy()

    return predict


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(*sys.argv[2:])
    else:
        main()
