"""Measures bits per character of pre-trained BERTs with different vocabularies.

    python -m benchmarks.vocabularies.bits --held_out=text.txt --output_dir=work/bits \\
        --models=NAME:CONFIG:CHECKPOINT_FOLDER:TOKENIZER_FOLDER,NAME:...

All models see the same passages of held-out text with the same spans of characters masked. A span
is the smallest part of an eojeol (a word between spaces) whose ends are token boundaries in every
vocabulary. Results are named NAME_... for each model: "bits_at_once" predicts all tokens of a span
independently, as in training; "bits_in_turn" predicts one token after another, by the chain rule;
"bits_count" is the cost of the number of tokens in a span, which the [MASK]s reveal, by its
frequencies in other passages; "bits" is the sum of the last two.

Limits: "bits" as a measure is independent of the vocabulary, but the models were not trained to
predict tokens in turn. Spans are predicted independently of each other. Spans depend on the
boundaries that the vocabularies share, so only numbers of the same run are comparable. Eojeols with
[UNK] in any vocabulary are never masked (their share is "unknown_share"). Whole spans are masked,
which models trained with single masked tokens have seldom seen.

Shapes: B batch, T tokens of a row, P predictions.
"""

import collections
import math
import random
from typing import NamedTuple

import numpy as np

from benchmarks.common import flag, launch, positive, write_results
from benchmarks.vocabularies.text import (
    Cuts,
    SharedSpans,
    choose_masked,
    limits_of,
    masked_characters,
    passages,
    read_eojeols,
    row,
    unknown_share,
)
from bert_common.import_tensorflow import import_tensorflow
from bert_common.progress import with_progress
from bert_tf.config import BertConfig
from model_formats.weights import find_weights
from tokenization import load_tokenizer

SEED = 12345  # determines the passages and their spans
BATCH = 64


class Model(NamedTuple):
    """A pre-trained model."""

    name: str
    config: str
    folder: str  # of its checkpoint
    tokenizer: str  # a folder


def parse_models(text):
    """Parses --models to a list of `Model`s."""
    return [Model(*part.split(":")) for part in text.split(",")]


def measure(models, held_out, characters, count):
    """Measures the bits of each model; returns a dict of NAME_... -> number.

    Args:
        models: `Model`s.
        held_out: the path of a text with one sentence per line and a blank line between documents.
        characters: the maximum length of a passage, including spaces.
        count: the number of passages to measure on; the others give frequencies of token counts.
    """
    all_cuts = [Cuts(load_tokenizer(model.tokenizer)) for model in models]
    spans, documents = SharedSpans(all_cuts), read_eojeols(held_out)
    texts = list(passages(documents, all_cuts, characters))
    rng = random.Random(SEED)
    rng.shuffle(texts)
    assert len(texts) > count
    examples = [choose_masked(eojeols, spans, rng) for eojeols in texts]
    measured, others = examples[:count], examples[count:]
    results = {"examples": count, "characters": masked_characters(measured)}
    for model, cuts in zip(models, all_cuts, strict=True):
        found = bits_of(model, cuts, measured, others)
        found["unknown_share"] = unknown_share(documents, cuts)
        results |= {f"{model.name}_{name}": value for name, value in found.items()}
    return results


def bits_of(model, cuts, measured, others):
    """Returns a model's bits per character on `measured`; `others` give frequencies."""
    config, limit = BertConfig.from_json_file(model.config), limits_of(measured, cuts)
    assert limit.length <= config.max_position_embeddings, "--characters must be smaller"
    loss_of = checkpoint_loss(config, find_weights(model.folder), BATCH)
    at_once, in_turn = measure_bits(loss_of, measured, cuts, limit)
    known, asked = (
        [len(cuts.pieces(example.eojeols, span)) for example in part for span in example.masked]
        for part in (others, measured)
    )
    of_count = frequency_bits(collections.Counter(known), asked, max([*known, *asked]))
    of_count /= masked_characters(measured)
    return {
        "bits_at_once": at_once,
        "bits_in_turn": in_turn,
        "bits_count": of_count,
        "bits": in_turn + of_count,
    }


def measure_bits(loss_of, examples, cuts, limit):
    """Computes bits per character of masked spans: with all tokens at once, and one after another.

    `loss_of` takes a list of `text.row`s and returns the sum of -ln p over their predictions.
    """
    most = [  # the tokens in the longest masked span of each example
        max((len(cuts.pieces(example.eojeols, span)) for span in example.masked), default=0)
        for example in examples
    ]
    at_once = loss_of([row(example, cuts, limit) for example in examples])
    in_turn = loss_of(
        [
            row(example, cuts, limit, asked=k)
            for k in range(max(most))
            for example, pieces in zip(examples, most, strict=True)
            if pieces > k
        ]
    )
    return [loss / math.log(2) / masked_characters(examples) for loss in (at_once, in_turn)]


def frequency_bits(counts, symbols, kinds):
    """Returns the cost of symbols in bits by their frequencies in the Counter `counts`.

    Each count of the `kinds` different symbols is increased by one, so that none is impossible.
    """
    total = counts.total() + kinds
    return sum(math.log2(total / (counts[symbol] + 1)) for symbol in symbols)


def checkpoint_loss(config, checkpoint, batch_size):
    """Returns the `loss_of` of a pre-trained model, which uses the project's evaluation step."""
    tf = import_tensorflow()
    from bert_tf import BertModel, PretrainingModel, load_google_checkpoint
    from bert_tf.training.evaluation import EvaluationStep
    from bert_tf.training.xla import choose_compilation

    model = PretrainingModel(BertModel(config))
    load_google_checkpoint(model, str(checkpoint))
    step = EvaluationStep(
        model, tf.distribute.get_strategy(), choose_compilation("auto", "float32")
    )

    def loss_of(rows):
        total = 0.0
        starts = range(0, len(rows), batch_size)
        for start in with_progress(starts, "held-out text", "batches"):
            part = rows[start : start + batch_size]
            missing = batch_size - len(part)  # padded to a fixed shape with rows of weight 0
            filler = {**part[0], "masked_lm_weights": bytes(len(part[0]["masked_lm_weights"]))}
            batch = stack([*part, *[filler] * missing])
            total += float(step(batch)["masked_lm_loss"])
        return total

    return loss_of


def stack(rows):
    """Stacks rows into a batch, a dict of [B, T] and [B, P]."""
    kinds = {name: np.int32 for name in rows[0]} | {"masked_lm_weights": np.float32}
    return {
        name: np.array([list(features[name]) for features in rows], kind)
        for name, kind in kinds.items()
    }


def main(arguments):
    """Measures the models, writes eval_results.txt and prints it."""
    models = parse_models(arguments.models)
    results = measure(models, arguments.held_out, arguments.characters, arguments.passages)
    write_results(arguments.output_dir, results)


if __name__ == "__main__":
    flags = {
        "models": str,
        "held_out": str,
        "characters": flag(100, "the most in a passage", type=positive(int)),
        "passages": flag(2000, "to measure on", type=positive(int)),
        "output_dir": str,
    }
    launch(main, __doc__, flags)
