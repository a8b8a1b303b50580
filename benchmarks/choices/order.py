"""Measures where a model tells the order of two segments, beside a rule without any training.

    python benchmarks/choices/order.py --model_dir=output/model --held_out=output/heldout.txt \\
        --input_file=output/heldout_512.tfrecord --output_dir=work/order

The records are those of create_pretraining_data.py --objective=sop --masking=static
--packing=false, made from the text. Where one of a row's segments is the beginning of a document,
words alone tell the order ("... is a city in ..."); elsewhere it has to be read from what the
segments say. So the rows are measured as two groups. The rule counts the pieces that the end of the
first segment shares with the start of the second, and takes away those that the end of the second
shares with the start of the first: what is told one after the other has words in common. A rare
piece counts more, by the logarithm of how few rows have it. Where both are equal, half of the rows
count as right. The model and the rule see the same rows, masked pieces included. Writes
eval_results.txt: WHO_accuracy_ROWS, the share of right answers, of the "model" and the "rule", on
"all" rows, on those with a "beginning" and on the "others".
"""

import collections
import math
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from common import ENVIRONMENT, argument_parser

os.environ.update(ENVIRONMENT)  # before TensorFlow is imported

from bert_common.errors import InputError
from bert_common.import_tensorflow import import_tensorflow
from bert_common.progress import with_progress
from choices.results import write_results
from create_pretraining_data.records.metadata import tokenizer_beside
from tokenization import load_tokenizer

BATCH = 64

# Pieces of a segment's start and end that the rule compares; of 15, 30, 60 and 120 the best where
# no segment begins a document.
WINDOW = 60

# Pieces that identify the beginning of a document.
FIRST_PIECES = 6


class Row(NamedTuple):
    """A row of two segments, as the model sees it."""

    features: dict  # name -> [T], the inputs of the encoder
    segments: tuple  # the pieces of the first and the second segment: two lists of ids
    starts: tuple  # the first pieces of both, before masking: two tuples of ids
    swapped: bool  # whether the second came first in the text


def read_rows(path, special):
    """Reads ordinary records with masks.

    Args:
        path: of the records.
        special: the ids of special tokens, which the segments of a `Row` are without.

    Raises:
        InputError: the records are of another kind.
    """
    import tensorflow as tf

    from create_pretraining_data.records.reader import open_records, parsing_spec, read_format

    form = read_format(path)
    if form.masking or form.packed_sequences or not form.sentence_label:
        raise InputError(
            "--input_file must hold records of create_pretraining_data.py --objective=sop "
            f"--masking=static --packing=false. Received: {path}, {form}"
        )
    rows = []
    for record in open_records(path).map(
        lambda line: tf.io.parse_single_example(line, parsing_spec(form))
    ):
        fields = {name: value.numpy() for name, value in record.items()}
        rows.append(_row(fields, special))
    return rows


def _row(fields, special):
    names = ("input_ids", "input_mask", "segment_ids")
    features = {name: fields[name].astype(np.int32) for name in names}
    ids, whole = features["input_ids"], features["input_ids"].copy()
    count = int(fields["masked_lm_weights"].sum())
    whole[fields["masked_lm_positions"][:count]] = fields["masked_lm_ids"][:count]
    length = int(features["input_mask"].sum())
    second = length - int(features["segment_ids"].sum())
    places = slice(1, second - 1), slice(second, length - 1)  # without [CLS] and [SEP]
    return Row(
        features,
        tuple([int(i) for i in ids[place] if int(i) not in special] for place in places),
        tuple(tuple(map(int, whole[place][:FIRST_PIECES])) for place in places),
        bool(fields["next_sentence_labels"][0]),
    )


def first_pieces(path, tokenizer):
    """The first pieces of every document of a text, a set of tuples of ids."""
    with open(path, encoding="utf-8") as file:
        documents = file.read().split("\n\n")
    lines = [document.strip().split("\n")[0] for document in documents if document.strip()]
    ids = (tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line)) for line in lines)
    return {tuple(of_line[:FIRST_PIECES]) for of_line in ids}


def rule_scores(rows, window=WINDOW):
    """What the rule says of each row, [N]: above 0 for "in order", below for "swapped"."""
    holders = collections.Counter()
    for row in rows:
        holders.update({piece for segment in row.segments for piece in segment})

    def shared(end, start):
        both = {*end[-window:]} & {*start[:window]}
        return sum(math.log(len(rows) / holders[piece]) for piece in sorted(both))

    return np.array([shared(a, b) - shared(b, a) for a, b in (row.segments for row in rows)])


def model_scores(rows, folder):
    """What a pre-trained model says of each row, [N], as `rule_scores`.

    Raises:
        InputError: the folder has no pre-trained model.
    """
    import korean_bert

    tf = import_tensorflow()
    network = korean_bert.load_model(folder).loaded.model
    if not hasattr(network, "next_sentence"):
        raise InputError(
            "--model_dir must have the head for pairs of a pre-trained model. "
            f"Received: {folder} without"
        )

    @tf.function
    def logits(features):
        return network.next_sentence(network.encoder(features)["pooled_output"])  # [B, 2]

    parts = [rows[start : start + BATCH] for start in range(0, len(rows), BATCH)]
    scores = []
    for part in with_progress(parts, "asking the model", "batches"):
        features = {
            name: tf.constant(np.stack([row.features[name] for row in part]))
            for name in part[0].features
        }
        of_part = logits(features).numpy()
        scores.append(of_part[:, 0] - of_part[:, 1])
    return np.concatenate(scores)


def accuracy(scores, swapped):
    """The share of right answers; an undecided one counts as half."""
    return float(np.mean(np.where(scores == 0, 0.5, (scores < 0) == swapped)))


def compare(rows, beginnings, model):
    """The results, a dict.

    Args:
        rows: `Row`s.
        beginnings: what `first_pieces` returns.
        model: what `model_scores` returns.
    """
    swapped = np.array([row.swapped for row in rows])
    begins = np.array([not beginnings.isdisjoint(row.starts) for row in rows])
    everywhere = np.ones(len(rows), bool)
    results = {"examples": len(rows), "beginning_share": float(begins.mean())}
    groups = {"all": everywhere, "beginning": begins, "others": ~begins}
    for who, scores in (("model", model), ("rule", rule_scores(rows))):
        for name, group in groups.items():
            if group.any():
                results[f"{who}_accuracy_{name}"] = accuracy(scores[group], swapped[group])
    return results


def main():
    """Writes eval_results.txt, and prints it."""
    parser = argument_parser(__doc__)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--input_file", required=True, help="records")
    parser.add_argument("--held_out", required=True, help="the text of the records")
    parser.add_argument("--output_dir", required=True)
    arguments = parser.parse_args()
    try:
        folder = tokenizer_beside(arguments.input_file)
        if folder is None:
            raise InputError(
                f"a tokenizer must lie beside the records. Received: none at {arguments.input_file}"
            )
        tokenizer = load_tokenizer(folder)
        import_tensorflow()
        special = {tokenizer.pad_id, tokenizer.unk_id, tokenizer.mask_id}
        rows = read_rows(arguments.input_file, special)
        beginnings = first_pieces(arguments.held_out, tokenizer)
        model = model_scores(rows, arguments.model_dir)
        write_results(arguments.output_dir, compare(rows, beginnings, model))
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
