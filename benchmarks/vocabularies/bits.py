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
"""

import collections
import os
import random
import sys
from typing import NamedTuple

from benchmarks.common import ENVIRONMENT, argument_parser, positive

os.environ.update(ENVIRONMENT)  # before TensorFlow is imported

from benchmarks.common import write_results
from benchmarks.vocabularies.text import (
    Cuts,
    SharedSpans,
    choose_masked,
    find_limits,
    masked_characters,
    passages,
    read_eojeols,
    unknown_share,
)
from bert_common.errors import InputError
from bert_common.import_tensorflow import import_tensorflow
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
    limits = find_limits(documents, spans, characters)
    texts = list(passages(documents, all_cuts, characters, limits))
    rng = random.Random(SEED)
    rng.shuffle(texts)
    if len(texts) <= count:
        raise InputError(f"--held_out must have more than {count} passages. Received: {len(texts)}")
    examples = [choose_masked(eojeols, spans, rng, limits) for eojeols in texts]
    measured, others = examples[:count], examples[count:]
    results = {"examples": count, "characters": masked_characters(measured)}
    for model, cuts, limit in zip(models, all_cuts, limits, strict=True):
        found = bits_of(model, cuts, limit, measured, others)
        found["unknown_share"] = unknown_share(documents, cuts)
        results |= {f"{model.name}_{name}": value for name, value in found.items()}
    return results


def bits_of(model, cuts, limit, measured, others):
    """The bits per character of a model, on examples of which `others` give frequencies."""
    from benchmarks.vocabularies.measures import checkpoint_loss, frequency_bits, measure_bits

    config = BertConfig.from_json_file(model.config)
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


def main():
    """Writes eval_results.txt, and prints it."""
    parser = argument_parser(__doc__)
    parser.add_argument("--models", required=True)
    parser.add_argument("--held_out", required=True)
    parser.add_argument(
        "--characters", type=positive(int), default=100, help="the most in a passage"
    )
    parser.add_argument("--passages", type=positive(int), default=2000, help="to measure on")
    parser.add_argument("--output_dir", required=True)
    arguments = parser.parse_args()
    try:
        models = parse_models(arguments.models)
        import_tensorflow()
        results = measure(models, arguments.held_out, arguments.characters, arguments.passages)
        write_results(arguments.output_dir, results)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
