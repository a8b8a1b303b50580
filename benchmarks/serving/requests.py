"""Compares requests per second of an exported classifier with transformers on the same weights.

    python -m benchmarks.serving.requests --sizes=mini,base --batches=1,32

A request is a batch of texts, which is tokenized and answered with probabilities. Both exports of
one model with random weights are loaded in separate processes that take turns, round after round,
on all cores that this process may use. Their probabilities must be equal. The transformers side
needs the extra "bench".
"""

import itertools
import os
import sys
import tempfile
import time

import numpy as np

from benchmarks.common import ROOT, cell, launch, print_table, ratios, some_of, take_turns
from benchmarks.contender import Contender, is_contender, serve
from benchmarks.reference.text import read_reviews

KINDS = ("saved_model", "transformers")
MAX_LENGTH = 512
LINES = {"sentences": 1, "paragraphs": 8}  # the number of lines of the file in a text
SECONDS = 1.0  # the approximate time that a contender runs in a round
FLAGS = {
    "sizes": some_of(("mini", "base"), ("tiny", "mini", "base")),
    "batches": [1, 32],
    "texts": some_of(LINES, LINES),
    "file": str(ROOT / "sample_corpus/heldout.txt"),
    "tokenizer_dir": str(ROOT / "tests/data/sample_tokenizer"),
    "contenders": some_of(KINDS, KINDS),
}


def main(options):
    """Exports the models, measures them and prints a table."""
    compared = [f"{options.contenders[0]} to {name}" for name in options.contenders[1:]]
    headings = ["size", "texts", "batch", *options.contenders, *compared]
    print("Requests a second: median over rounds (spread), and the median of their ratios.\n")
    print_table(headings, rows(options))


def rows(options):
    """Yields a row of the table for every size, kind of text and batch."""
    lines, texts = read_texts(options.file), {}
    for name in options.texts:
        starts = range(0, len(lines), LINES[name])
        texts[name] = [" ".join(lines[start : start + LINES[name]]) for start in starts]
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            export(size, options.tokenizer_dir, folder, *options.contenders)
            running = {
                kind: Contender(
                    "benchmarks.serving.requests",
                    kind,
                    {"model": f"{folder}/{kind}", "texts": texts},
                )
                for kind in options.contenders
            }
            for name in texts:
                for batch in options.batches:
                    first, *others = measure(running, name, batch, options.rounds)
                    middles = [np.median(ratios(first, other)) for other in others]
                    yield [
                        size, name, str(batch), *(cell(each, ".1f") for each in (first, *others)),
                        *(f"{middle:.2f}" for middle in middles),
                    ]  # fmt: skip
            for contender in running.values():
                contender.close()


def read_texts(path, count=None):
    """Reads the first texts of a file with a text per line, or of NSMC."""
    return list(itertools.islice(read_reviews([path]), count))


def export(size, tokenizer_dir, folder, *kinds):
    """Writes a classifier with random weights as contenders `kinds` read it."""
    from bert_tf import BertConfig, BertModel
    from finetuning.classification.head import SequenceClassifier
    from model_formats.huggingface.export import export as export_huggingface
    from model_formats.loaded_model import LoadedModel
    from model_formats.model_folder import ModelFolder
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
        folder=ModelFolder(folder),
    )
    writers = {"saved_model": export_saved_model, "transformers": export_huggingface}
    for kind in kinds:
        os.makedirs(os.path.join(folder, kind))
        writers[kind](loaded, os.path.join(folder, kind))


def measure(running, texts, batch, rounds):
    """Compares the answers, then returns each contender's requests per second in every round."""
    first, *others = [np.array(one.ask([texts, batch, 0])) for one in running.values()]
    for other in others:
        if not np.allclose(first, other, atol=1e-4):
            sys.exit(f"error: probabilities must be equal. Received: {first[0]}, {other[0]}")
    runs = {
        kind: lambda contender=contender: contender.ask([texts, batch, SECONDS])
        for kind, contender in running.items()
    }
    return take_turns(runs, rounds).values()


def make_answers(kind, task):
    """Makes a contender's answer to [name of texts, batch, seconds].

    It returns the requests per second or, for 0 seconds, the probabilities of all texts.
    """
    load = {"saved_model": load_saved_model, "transformers": load_transformers}[kind]
    predict = load(task["model"])

    def answer(request):
        name, batch, seconds = request
        texts = task["texts"][name]
        chosen = np.resize(texts, -(-len(texts) // batch) * batch)
        batches = [part.tolist() for part in np.split(chosen, len(chosen) // batch)]
        if not seconds:
            return np.concatenate([predict(part) for part in batches]).tolist()
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds or count < 2:
            predict(batches[count % len(batches)])
            count += 1
        return count / (time.perf_counter() - start)

    return answer


def load_saved_model(folder):
    """Makes a function from texts to probabilities that calls the SavedModel like a server."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 - its operations

    model = tf.saved_model.load(folder)
    signature = model.signatures["serving_default"]

    def predict(texts):
        return signature(text=tf.constant(texts))["probabilities"].numpy()

    predict.model = model  # the signature works only while the model exists
    return predict


def load_transformers(folder):
    """Makes the same function with transformers and torch."""
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
    if is_contender():
        serve(make_answers)
    else:
        launch(main, __doc__, FLAGS, rounds=9)
