"""Measures on which rows a model can tell the order of two segments.

    python -m benchmarks.quality.order --model_dir=output/model --held_out=output/heldout.txt \\
        --input_file=output/heldout_512.tfrecord --output_dir=work/order

The records are made from the text by create_pretraining_data.py --objective=sop --masking=static
--packing=false. If a segment starts in the first sentence of a document, its wording alone gives
the order away ("... is a city in ..."); otherwise only the content does. So the two kinds of rows
are measured separately. Writes eval_results.txt with model_accuracy_ROWS, the share of right
answers on "all" rows, on rows with a "beginning" and on the "others". A tie counts as half right.
"""

from typing import NamedTuple

import numpy as np

from benchmarks.common import flag, launch, write_results
from benchmarks.reference.text import documents
from bert_common.folders import make_writable
from bert_common.import_tensorflow import import_tensorflow
from bert_common.progress import with_progress
from create_pretraining_data.records.metadata import (
    described_objective,
    read_sidecar,
    tokenizer_beside,
)
from tokenization import load_tokenizer

BATCH = 64

# How many tokens identify a place in the first sentence of a document.
IDENTIFYING = 10


class Row(NamedTuple):
    """A row of two segments, as the model sees it."""

    features: dict  # name -> [T], the inputs of the encoder
    starts: tuple  # the first `IDENTIFYING` tokens of both before masking: two tuples of ids
    swapped: bool  # whether the second segment comes first in the text


def read_rows(path, record_format):
    """Reads the `Row`s of unpacked records with masks, in the given `RecordFormat`."""
    import tensorflow as tf

    from create_pretraining_data.records.reader import open_records, parsing_spec

    spec = parsing_spec(record_format)
    parsed = open_records(path).map(lambda record: tf.io.parse_single_example(record, spec))
    return [_row(fields) for fields in parsed.as_numpy_iterator()]


def _row(fields):
    names = ("input_ids", "input_mask", "segment_ids")
    features = {name: fields[name].astype(np.int32) for name in names}
    unmasked = features["input_ids"].copy()  # with the masked tokens restored, [T]
    count = int(fields["masked_lm_weights"].sum())
    unmasked[fields["masked_lm_positions"][:count]] = fields["masked_lm_ids"][:count]
    length = int(features["input_mask"].sum())
    second = length - int(features["segment_ids"].sum())
    places = slice(1, second - 1), slice(second, length - 1)  # without [CLS] and [SEP]
    return Row(
        features,
        tuple(tuple(unmasked[place][:IDENTIFYING].tolist()) for place in places),
        bool(fields["next_sentence_labels"][0]),
    )


def beginnings_of(path, tokenizer):
    """Returns the runs of `IDENTIFYING` tokens that start in the first sentence of a document.

    They start not only at its first token, as segments of too long pairs are cut at the front too.

    Returns:
        A set of tuples of ids.
    """
    found = set()
    for sentences in documents([path]):
        ids, first = [], None
        for sentence in sentences:
            ids += tokenizer.convert_tokens_to_ids(tokenizer.tokenize(sentence))
            first = len(ids) if first is None else first
            if len(ids) >= first + IDENTIFYING:
                break
        found.update(tuple(ids[start : start + IDENTIFYING]) for start in range(first))
    return found


def load_pretrained(folder, tokenizer):
    """Loads the `PretrainingModel` of a folder, which must have the tokenizer of the records."""
    import korean_bert

    model = korean_bert.load_model(folder)
    assert not model.loaded.lacks_part("next_sentence")
    assert model.tokenizer.fingerprint() == tokenizer.fingerprint()
    return model.loaded.model


def model_scores(rows, model):
    """Returns the model's score of each `Row`, [N]: above 0 for "in order", else "swapped"."""
    tf = import_tensorflow()

    @tf.function
    def logits(features):
        return model.next_sentence(model.encoder(features)["pooled_output"])  # [B, 2]

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
    """Returns the share of right answers; a tie counts as half."""
    return float(np.mean(np.where(scores == 0, 0.5, (scores < 0) == swapped)))


def compare(rows, beginnings, scores):
    """Computes the results, a dict.

    Args:
        rows: `Row`s.
        beginnings: the result of `beginnings_of`.
        scores: the result of `model_scores`.
    """
    swapped = np.array([row.swapped for row in rows])
    begins = np.array([not beginnings.isdisjoint(row.starts) for row in rows])
    everywhere = np.ones(len(rows), bool)
    results = {"examples": len(rows), "beginning_share": float(begins.mean())}
    groups = {"all": everywhere, "beginning": begins, "others": ~begins}
    for name, group in groups.items():
        if group.any():
            results[f"model_accuracy_{name}"] = accuracy(scores[group], swapped[group])
    return results


def main(arguments):
    """Writes eval_results.txt, and prints it."""
    import_tensorflow()
    from bert_tf.input.record_checks import check_records
    from create_pretraining_data.records.reader import read_format

    make_writable(arguments.output_dir, "--output_dir must be a directory that can be written")
    path = arguments.input_file
    record_format = read_format(path)
    assert described_objective(read_sidecar(path)) == "sop"
    assert not (record_format.packed_sequences or record_format.masking)
    tokenizer = load_tokenizer(tokenizer_beside(path))
    model = load_pretrained(arguments.model_dir, tokenizer)
    length, predictions = record_format.max_seq_length, record_format.max_predictions_per_seq
    assert length <= model.config.max_position_embeddings
    check_records([path], length, predictions, model.config)
    beginnings = beginnings_of(arguments.held_out, tokenizer)
    rows = read_rows(path, record_format)
    write_results(arguments.output_dir, compare(rows, beginnings, model_scores(rows, model)))


if __name__ == "__main__":
    flags = {
        "model_dir": str,
        "input_file": flag(str, "records"),
        "held_out": flag(str, "the text of the records"),
        "output_dir": str,
    }
    launch(main, __doc__, flags)
