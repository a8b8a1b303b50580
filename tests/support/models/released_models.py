"""Folders of released models as they are unpacked: real file and variable names, random weights.

The names and shapes of the variables are those of Google's checkpoints; small models have other
sizes in the same places.
"""

import csv
import json

import numpy as np

from bert_tf.checkpoint import write_arrays
from tests.support.paths import TEST_DATA
from tests.support.task_data import WORDS
from tests.support.vocabularies import SPECIAL, write_lines
from tokenization import SentencePieceTokenizer

DATA = TEST_DATA
SPM_MODEL = DATA / "tokenization" / "spm_small.model"

PIECES = [*SPECIAL, *WORDS, "what", "yes", "number", "?", "."]

# What small models have in the place of the real sizes; positions are as many as the hidden size.
SIZE = 32
BERT = "google_uncased_L-8_H-512_A-8"
ALBERT = "google_albert_base_tfhub3"
SMALL = {
    BERT: {512: SIZE, 2048: 48, 30522: len(PIECES)},
    ALBERT: {512: SIZE, 768: SIZE, 3072: 48, 128: 16, 30000: 1600},
}
LAYERS = 2

# What Google's checkpoints for pre-training hold, and the hub's module not.
SENTENCE_HEAD = {"cls/seq_relationship/output_weights": (2, 768),
                 "cls/seq_relationship/output_bias": (2,)}  # fmt: skip


def variables(source, small):
    """Names and shapes of the variables of a released checkpoint."""
    with open(DATA / "checkpoints" / source / "VARIABLES.tsv", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        table = {row["name"]: tuple(json.loads(row["shape"])) for row in rows}
    if source == ALBERT:
        table |= SENTENCE_HEAD
    if not small:
        return table
    left_out = tuple(f"bert/encoder/layer_{i}/" for i in range(LAYERS, 8))
    return {
        name: tuple(SMALL[source].get(size, size) for size in shape)
        for name, shape in table.items()
        if not name.startswith(left_out)
    }


def config(source, small):
    """The published configuration, smaller if that is wanted."""
    (path,) = (DATA / "checkpoints" / source).glob("*_config.json")
    values = json.loads(path.read_text())
    if small:
        sized = [name for name in values if name.endswith(("_size", "_embeddings"))]
        values |= {name: SMALL[source].get(values[name], values[name]) for name in sized}
        values |= {"num_hidden_layers": LAYERS, "num_attention_heads": 4}
    return path.name, values


def write_weights(prefix, source, small):
    rng, table = np.random.default_rng(0), variables(source, small)
    drawn = {name: rng.standard_normal(shape, np.float32) for name, shape in table.items()}
    write_arrays(str(prefix), {name: np.asarray(0.02 * x, np.float32) for name, x in drawn.items()})


def write_bert(folder, small=True):
    """What uncased_L-8_H-512_A-8.zip has in it."""
    folder.mkdir(parents=True)
    name, values = config(BERT, small)
    (folder / name).write_text(json.dumps(values))
    pieces = PIECES + [f"[unused{i}]" for i in range(values["vocab_size"] - len(PIECES))]
    write_lines(folder / "vocab.txt", pieces)
    write_weights(folder / "bert_model.ckpt", BERT, small)
    return folder


def write_albert(folder, small=True):
    """What albert_base_v2.tar.gz has in it; xxlarge's configuration holds one more key."""
    folder.mkdir(parents=True)
    name, values = config(ALBERT, small)
    (folder / name).write_text(json.dumps({**values, "layers_to_keep": []}))
    (folder / "30k-clean.model").write_bytes(SPM_MODEL.read_bytes())
    tokenizer = SentencePieceTokenizer(SPM_MODEL)
    write_lines(folder / "30k-clean.vocab", (f"{piece}\t0" for piece in tokenizer.vocab))
    write_weights(folder / "model.ckpt-best", ALBERT, small)
    return folder


WRITERS = {"bert": write_bert, "albert": write_albert}
