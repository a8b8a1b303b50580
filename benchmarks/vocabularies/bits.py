"""Measures bits per character of pre-trained BERTs with different vocabularies.

    python -m benchmarks.vocabularies.bits --held_out=text.txt --output_dir=work/bits \\
        --models=NAME:CONFIG:CHECKPOINT_FOLDER:TOKENIZER_FOLDER,NAME:...

All models see the same passages of held-out text with the same spans of characters masked: a span
is the smallest part of an eojeol (word between spaces) both of whose ends are borders of pieces in
every vocabulary. For each model, as NAME_...: "bits_at_once", all pieces of a span predicted
independently, as in training; "bits_in_turn", one piece after another, by the chain rule;
"bits_count", what the number of a span's pieces costs by its frequencies in other passages, because
the [MASK]s reveal it; "bits", the last two together.

Limits: "bits" is independent of the vocabulary as a measure, but the models were not trained to
predict pieces in turn; spans are independent of each other; the spans follow the borders that the
vocabularies share, so only numbers of one run compare; eojeols with [UNK] in any vocabulary are
never masked (their share is "unknown_share"). Whole spans are masked, which a model that was
trained with single pieces masked has seldom seen.

Shapes: B batch, T pieces of a row, P predictions.
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
from bert_common.errors import InputError
from bert_common.import_tensorflow import import_tensorflow
from bert_common.progress import with_progress
from bert_tf.config import BertConfig
from model_formats.weights import find_weights
from tokenization import load_tokenizer

SEED = 12345  # of the passages and their spans
BATCH = 64


class Model(NamedTuple):
    """A pre-trained model."""

    name: str
    config: str
    folder: str  # of its checkpoint
    tokenizer: str  # a folder


def parse_models(text):
    """The `Model`s of --models."""
    parts = [part.split(":") for part in text.split(",")]
    if any(len(part) != len(Model._fields) for part in parts):
        raise InputError(
            "--models must be NAME:CONFIG:CHECKPOINT_FOLDER:TOKENIZER_FOLDER, comma-separated. "
            f"Received: {text}"
        )
    return [Model(*part) for part in parts]


def measure(models, held_out, characters, count):
    """The bits of each model; a dict of NAME_... -> number.

    Args:
        models: `Model`s.
        held_out: the path of a text, a sentence a line, a blank line between documents.
        characters: the most in a passage, spaces included.
        count: passages to measure on; the others say how frequent numbers of pieces are.
    """
    all_cuts = [Cuts(load_tokenizer(model.tokenizer)) for model in models]
    spans, documents = SharedSpans(all_cuts), read_eojeols(held_out)
    texts = list(passages(documents, all_cuts, characters))
    rng = random.Random(SEED)
    rng.shuffle(texts)
    if len(texts) <= count:
        raise InputError(f"--held_out must have more than {count} passages. Received: {len(texts)}")
    examples = [choose_masked(eojeols, spans, rng) for eojeols in texts]
    measured, others = examples[:count], examples[count:]
    results = {"examples": count, "characters": masked_characters(measured)}
    for model, cuts in zip(models, all_cuts, strict=True):
        found = bits_of(model, cuts, measured, others)
        found["unknown_share"] = unknown_share(documents, cuts)
        results |= {f"{model.name}_{name}": value for name, value in found.items()}
    return results


def bits_of(model, cuts, measured, others):
    """The bits per character of a model, on examples of which `others` give frequencies."""
    config, limit = BertConfig.from_json_file(model.config), limits_of(measured, cuts)
    if limit.length > config.max_position_embeddings:
        raise InputError(
            f"passages must fit into {config.max_position_embeddings} positions: --characters must "
            f"be smaller. Received: {limit.length} pieces"
        )
    loss_of = checkpoint_loss(config, find_weights(model.folder), BATCH)
    bits = measure_bits(loss_of, measured, cuts, limit)
    known, asked = (
        [len(cuts.pieces(example.eojeols, span)) for example in part for span in example.masked]
        for part in (others, measured)
    )
    of_count = frequency_bits(collections.Counter(known), asked, max([*known, *asked]))
    of_count /= masked_characters(measured)
    return {
        "bits_at_once": bits.at_once,
        "bits_in_turn": bits.in_turn,
        "bits_count": of_count,
        "bits": bits.in_turn + of_count,
    }


class Bits(NamedTuple):
    """Bits per character of the masked spans."""

    at_once: float
    in_turn: float


def measure_bits(loss_of, examples, cuts, limit):
    """Computes the `Bits` of examples, all pieces at once and one after another.

    `loss_of` takes a list of `text.row`s and returns the sum of -ln p over their predictions.
    """
    most = [  # pieces in a masked span
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
    return Bits(*(loss / math.log(2) / masked_characters(examples) for loss in (at_once, in_turn)))


def frequency_bits(counts, symbols, kinds):
    """The bits that symbols cost by their frequencies in the Counter `counts`.

    Each count of the `kinds` of symbols is raised by one, so that none is impossible.
    """
    total = counts.total() + kinds
    return sum(math.log2(total / (counts[symbol] + 1)) for symbol in symbols)


def checkpoint_loss(config, checkpoint, batch_size):
    """The `loss_of` of a pre-trained model, computed by the project's evaluation step."""
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
            missing = batch_size - len(part)  # batches have one shape: filled up with weight 0
            filler = {**part[0], "masked_lm_weights": bytes(len(part[0]["masked_lm_weights"]))}
            batch = stack([*part, *[filler] * missing])
            total += float(step(batch)["masked_lm_loss"])
        return total

    return loss_of


def stack(rows):
    """Stacks rows into a batch: a dict of [B, T] and [B, P]."""
    kinds = {name: np.int32 for name in rows[0]} | {"masked_lm_weights": np.float32}
    return {
        name: np.array([list(features[name]) for features in rows], kind)
        for name, kind in kinds.items()
    }


def main(arguments):
    """Writes eval_results.txt, and prints it."""
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
