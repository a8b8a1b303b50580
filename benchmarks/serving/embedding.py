"""Measures texts a second that `embed` turns into vectors, beside transformers with its weights.

    python -m benchmarks.serving.embedding --texts=ratings_test.txt --count=20000 --rounds=3
    python -m benchmarks.serving.embedding --texts=ratings_test.txt --sizes=mini,base

A run turns all texts into the means of their pieces' vectors; tokenization is part of it. The
contenders are processes of their own that take turns, round after round, on all cores that this
process may use; their vectors must be equal within 1e-4.

    embed           load_model(folder).embed(texts)
    by_length       transformers as fast as it goes: texts sorted by length, batches of 32, SDPA
                    attention, inference_mode
    in_order        the same as its pages show it: batches of 32 in the order of the texts
    sentence        the encode of sentence-transformers, from 6.0 on, if it is installed

--sizes=reference is the model that comes with this project, whose tokenizer is Python on both
sides; other sizes have random weights and a vocabulary that transformers reads with its compiled
tokenizer. Needs the extra "bench".
"""

import functools
import importlib.util
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
    take_turns,
)
from benchmarks.serving.requests import export
from model_formats.model_folder import REFERENCE_MODEL

MODULE = "benchmarks.serving.embedding"  # this file, as its own child processes run it

KINDS = ("embed", "by_length", "in_order", "sentence")
SIZES = ("reference", "tiny", "mini", "base")
BATCH_SIZE = 32  # of embed and of sentence-transformers, where nothing else is said
MAX_LENGTH = 128  # pieces: no review is cut
MOST_DIFFERENCE = 1e-4  # between the vectors of two contenders, whose values are about 1


def main():
    """Measures each size, prints a table."""
    installed = importlib.util.find_spec("sentence_transformers") is not None
    parser = argument_parser(__doc__)
    parser.add_argument("--sizes", type=one_of(*SIZES), default=["reference", "base"])
    parser.add_argument("--texts", required=True, help="a text a line, or NSMC's ratings_*.txt")
    parser.add_argument("--count", type=int, default=20_000, help="of texts, from the first")
    parser.add_argument("--tokenizer_dir", default=str(ROOT / "tests/data/sample_tokenizer"))
    parser.add_argument("--rounds", type=int, default=3)
    kinds = list(KINDS if installed else KINDS[:-1])
    parser.add_argument("--contenders", type=one_of(*KINDS), default=kinds)
    options = parser.parse_args()
    ratios = [f"{options.contenders[0]} to {name}" for name in options.contenders[1:]]
    headings = ["size", "texts", *options.contenders, *ratios, "largest difference"]
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
            path = os.path.join(folder, "texts.json")
            Path(path).write_text(json.dumps(texts), encoding="utf-8")
            running = [Contender(kind, model, path) for kind in options.contenders]
            difference = largest_difference(running)
            seconds = np.array(take_turns(running, options.rounds, 1))  # [contenders, rounds]
            for contender in running:
                contender.close()
        speeds = len(texts) / seconds
        cells = [f"{m:.0f} ({s:.0%})" for m, s in map(median_and_spread, speeds)]
        pairs = [median_and_spread(speeds[0] / other) for other in speeds[1:]]
        cells += [f"{ratio:.2f} ({spread:.0%})" for ratio, spread in pairs]
        yield size, f"{len(texts):,}", *cells, f"{difference:.1e}"


def read_texts(path, count):
    """The first texts of a file that are not blank."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    if lines[0].split("\t") == ["id", "document", "label"]:
        lines = [line.split("\t")[1] for line in lines[1:]]
    return [line for line in lines if line.strip()][:count]


class Contender:
    """A process that has loaded the model and the texts; `module` is a file with a `serve`."""

    def __init__(self, kind, folder, texts, module=MODULE):
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, "--serve", kind, folder, texts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**child_environment(), "TOKENIZERS_PARALLELISM": "true"},
            text=True,
        )
        self.kind, self.seconds = kind, []

    def ask(self, line):
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"error: the contender {self.kind} has ended, see above")
        return json.loads(answer)

    def run(self, times):
        """Turns all texts into vectors some times; records the seconds of each."""
        self.seconds += [self.ask("run") for _ in range(times)]

    def vectors(self):
        """The vectors of all texts, computed in a run that is not timed: it warms up."""
        with tempfile.TemporaryDirectory() as folder:
            self.ask(path := os.path.join(folder, "vectors.npy"))
            return np.load(path)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def largest_difference(running):
    """The largest difference between the first contender's vectors and the others'."""
    first, *others = running
    expected, largest = first.vectors(), 0.0
    for other in others:
        found = float(np.abs(other.vectors() - expected).max())
        if found > MOST_DIFFERENCE:
            sys.exit(
                f"error: the vectors of {first.kind} and {other.kind} must be equal. "
                f"Received: a difference of {found:.1e}"
            )
        largest = max(largest, found)
    return largest


def serve(load, folder, texts):
    """Computes for each line: "run" answers the seconds, anything else is a file to write.

    Args:
        load: a function of the folder that returns a function of texts to vectors.
        folder: the model's.
        texts: a JSON file with their list.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not come among the answers
    texts = json.loads(Path(texts).read_text(encoding="utf-8"))
    embed = load(folder)
    for line in sys.stdin:
        start = time.perf_counter()
        vectors = embed(texts)  # [B, H]
        seconds = time.perf_counter() - start
        if line.strip() != "run":
            np.save(line.strip(), vectors)
        print(json.dumps(seconds), file=answers, flush=True)


def load_embed(folder):
    """This project."""
    from korean_bert import load_model

    return functools.partial(load_model(folder).embed, max_length=MAX_LENGTH)


def load_transformers(folder):
    """The tokenizer and the encoder of transformers on torch, with all cores."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    from bert_common.cpu import available_cores

    torch.set_num_threads(available_cores())
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    return tokenizer, AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()


def mean_of_pieces(model, ids, mask):
    """The means of the vectors of a batch, [b, T] each -> float32 [b, H]."""
    states = model(input_ids=ids, attention_mask=mask).last_hidden_state  # [b, T, H]
    mask = mask[..., None].to(states.dtype)  # [b, T, 1]
    return ((states * mask).sum(dim=1) / mask.sum(dim=1)).numpy()  # [b, H]


def load_in_order(folder):
    """Batches as they come, each tokenized and padded by itself."""
    import torch

    tokenizer, model = load_transformers(folder)
    options = {"padding": True, "truncation": True, "max_length": MAX_LENGTH}

    @torch.inference_mode()
    def embed(texts):
        vectors = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = tokenizer(texts[start : start + BATCH_SIZE], return_tensors="pt", **options)
            vectors.append(mean_of_pieces(model, batch["input_ids"], batch["attention_mask"]))
        return np.concatenate(vectors)

    return embed


def load_by_length(folder):
    """All texts tokenized at once, batches of texts of about equal length."""
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
    """sentence-transformers, which sorts by length by itself."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    trusted = {"trust_remote_code": True}  # the reference model's tokenizer is Python
    encoder = Transformer(folder, max_seq_length=MAX_LENGTH, processor_kwargs=trusted)
    pooling = Pooling(encoder.get_embedding_dimension(), "mean")
    model = SentenceTransformer(modules=[encoder, pooling], device="cpu")
    return functools.partial(model.encode, batch_size=BATCH_SIZE)


CONTENDERS = {
    "embed": load_embed,
    "by_length": load_by_length,
    "in_order": load_in_order,
    "sentence": load_sentence_transformers,
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(CONTENDERS[sys.argv[2]], *sys.argv[3:])
    else:
        main()
