"""Compares the texts per second of `embed` with transformers on the same weights.

    python -m benchmarks.serving.embedding --texts=ratings_test.txt --count=20000 --rounds=3
    python -m benchmarks.serving.embedding --texts=ratings_test.txt --sizes=mini,base

A run tokenizes all texts and turns them into the means of their tokens' vectors. The contenders are
separate processes that take turns, round after round, on all cores that this process may use; their
vectors must be equal within 1e-4.

    embed           load_model(folder).embed(texts)
    by_length       transformers at its fastest: texts sorted by length, batches of 32, SDPA
                    attention, inference_mode
    sentence        encode of sentence-transformers, if installed

--sizes=reference is the model that comes with this project, whose tokenizer is Python on both
sides; other sizes have random weights and a vocabulary that transformers reads with its compiled
tokenizer. Needs the extra "bench".
"""

import functools
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import (
    ROOT,
    cell,
    flag,
    launch,
    positive,
    print_table,
    ratios,
    some_of,
    take_turns,
)
from benchmarks.contender import Contender, is_contender, serve
from benchmarks.serving.requests import export, read_texts
from model_formats.model_folder import REFERENCE_MODEL

SIZES = ("reference", "tiny", "mini", "base")
BATCH_SIZE = 32  # the default of embed and of sentence-transformers
MAX_LENGTH = 128  # in tokens, so that no review is cut
MOST_DIFFERENCE = 1e-4  # between the vectors of two contenders, whose values are about 1


def main(options):
    """Measures each size and prints a table."""
    first, *others = options.contenders
    compared = [f"{first} to {name}" for name in others]
    headings = ["size", "texts", *options.contenders, *compared, "largest difference"]
    print("Texts a second: median over rounds (spread), and the median of their ratios.\n")
    print_table(headings, rows(options))


def rows(options):
    """Yields a row of the table for every size."""
    texts = read_texts(options.texts, options.count)
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            model = REFERENCE_MODEL
            if size != "reference":
                export(size, options.tokenizer_dir, folder, "transformers")
                model = os.path.join(folder, "transformers")
            vectors, speeds = embed_in_turns(
                "benchmarks.serving.embedding", options.contenders, model, texts, options.rounds
            )
        first = options.contenders[0]
        others = {name: ratios(speeds[first], speeds[name]) for name in options.contenders[1:]}
        yield [
            size, f"{len(texts):,}", *(cell(speed, ".0f") for speed in speeds.values()),
            *(cell(values, ".2f") for values in others.values()),
            f"{largest_difference(vectors):.1e}",
        ]  # fmt: skip


def embed_in_turns(program, names, model, texts, rounds):
    """Measures contenders that take turns in turning texts into vectors.

    Args:
        program: the module that defines the contenders.
        names: the contenders' names.
        model: the model's folder.
        texts: a list.
        rounds: the number of rounds after a warm-up round.

    Returns:
        Name -> vectors, [N, H]; name -> texts per second, in each round.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "texts.json")
        Path(path).write_text(json.dumps(texts), encoding="utf-8")
        environment = {"TOKENIZERS_PARALLELISM": "true"}
        task = {"model": str(model), "texts": path, "environment": environment}
        running = {name: Contender(program, name, task) for name in names}
        vectors = {}
        for name, contender in running.items():
            contender.ask(os.path.join(folder, "vectors.npy"))
            vectors[name] = np.load(os.path.join(folder, "vectors.npy"))
        runs = {name: lambda c=c: len(texts) / c.ask(None) for name, c in running.items()}
        speeds = take_turns(runs, rounds)
        for contender in running.values():
            contender.close()
    return vectors, speeds


def largest_difference(vectors):
    """Returns the largest difference between the first contender's vectors and the others'."""
    (first, expected), *others = vectors.items()
    largest = 0.0
    for other, found in others:
        difference = float(np.abs(found - expected).max())
        if difference > MOST_DIFFERENCE:
            sys.exit(
                f"error: the vectors of {first} and {other} must be equal. "
                f"Received: a difference of {difference:.1e}"
            )
        largest = max(largest, difference)
    return largest


def make_embedding(loaders, kind, task):
    """Makes a contender's answer, the seconds; it writes the vectors to the requested file."""
    texts = json.loads(Path(task["texts"]).read_text(encoding="utf-8"))
    embed = loaders[kind](task["model"])

    def answer(path):
        start = time.perf_counter()
        vectors = embed(texts)  # [B, H]
        seconds = time.perf_counter() - start
        if path:
            np.save(path, vectors)
        return seconds

    return answer


def load_embed(folder):
    """Loads this project's `embed`."""
    from korean_bert import load_model

    return functools.partial(load_model(folder).embed, max_length=MAX_LENGTH)


def load_transformers(folder):
    """Loads the tokenizer and the encoder of transformers on torch, with all cores."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from bert_common.cpu import available_cores

    torch.set_num_threads(available_cores())
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    return tokenizer, AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()


def mean_of_pieces(model, ids, mask):
    """Returns the mean token vectors of a batch, [b, T] each -> float32 [b, H]."""
    states = model(input_ids=ids, attention_mask=mask).last_hidden_state  # [b, T, H]
    mask = mask[..., None].to(states.dtype)  # [b, T, 1]
    return ((states * mask).sum(dim=1) / mask.sum(dim=1)).numpy()  # [b, H]


def load_by_length(folder):
    """Loads transformers, with all texts tokenized at once and batched by length."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    tokenizer, model = load_transformers(folder)

    @torch.inference_mode()
    def embed(texts):
        rows = tokenizer(texts, truncation=True, max_length=MAX_LENGTH)["input_ids"]
        order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
        found = [None] * len(rows)
        for start in range(0, len(rows), BATCH_SIZE):
            chosen = order[start : start + BATCH_SIZE]
            batch = [torch.tensor(rows[i]) for i in chosen]
            ids = pad_sequence(batch, batch_first=True, padding_value=tokenizer.pad_token_id)
            mask = pad_sequence([torch.ones_like(row) for row in batch], batch_first=True)
            for place, vector in zip(chosen, mean_of_pieces(model, ids, mask), strict=True):
                found[place] = vector
        return np.stack(found)

    return embed


def load_sentence_transformers(folder):
    """Loads sentence-transformers, which sorts texts by length itself."""
    from sentence_transformers import SentenceTransformer

    # The reference model's tokenizer is Python. The mean is the default pooling.
    model = SentenceTransformer(folder, device="cpu", trust_remote_code=True)
    model.max_seq_length = MAX_LENGTH
    return functools.partial(model.encode, batch_size=BATCH_SIZE)


CONTENDERS = {
    "embed": load_embed,
    "by_length": load_by_length,
    "sentence": load_sentence_transformers,
}


INSTALLED = [
    name
    for name in CONTENDERS
    if name != "sentence" or importlib.util.find_spec("sentence_transformers")
]
FLAGS = {
    "sizes": some_of(("reference", "base"), SIZES),
    "texts": flag(str, "a text a line, or NSMC's ratings_*.txt"),
    "count": flag(20_000, "of texts, from the first", type=positive(int)),
    "tokenizer_dir": str(ROOT / "tests/data/sample_tokenizer"),
    "contenders": some_of(INSTALLED, CONTENDERS),
}


if __name__ == "__main__":
    if is_contender():
        serve(functools.partial(make_embedding, CONTENDERS))
    else:
        launch(main, __doc__, FLAGS, rounds=3)
