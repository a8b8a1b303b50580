"""Mixes natural rows, those above all whose words show their order, with rows of `splice.py`.

    python benchmarks/sentence_order/mixture.py --natural=work/natural_512.tfrecord \\
        --spliced=work/anywhere_512.tfrecord --rows=60000 --clear=0.6 --spliced_share=0.4 \\
        --least_score=15 --random_seed=1 --output_file=work/mixture_512.tfrecord

A lesson between the rows of splice.py and natural text. In natural text the untrained rule of
rule.py is right in two of three rows: learned from all of them, the ability of the lessons before
is lost before it becomes useful. A clear row is one in which the rule is right and sure: its score
for the true order is --least_score or more. --clear and --spliced_share are shares of the rows; the
others are drawn from all natural ones. Where there are too few, they are repeated. The natural
records are those of create_pretraining_data.py --objective=sop --packing=false --masking=static
--masked_lm_prob=0, of which rows with fewer than --shortest pieces are left out; both must have the
same format, which the mixture has too.
"""

import dataclasses
import os
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Not first: a test imports this file, and benchmarks/tokenization.py must not hide the package from
# its worker processes.
sys.path.append(str(Path(__file__).parents[1]))

from common import ENVIRONMENT, argument_parser

os.environ.update(ENVIRONMENT)  # before TensorFlow is imported

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_common.import_tensorflow import import_tensorflow
from bert_common.progress import with_progress
from create_pretraining_data.records.encoding import encode_records
from create_pretraining_data.records.metadata import tokenizer_beside
from create_pretraining_data.records.tfrecord import frame
from sentence_order.rows import check_kind, segment_places, unmasked_ids, write_description
from sentence_order.rule import OverlapRule
from tokenization import load_tokenizer

# Rows whose scores are computed between two updates of the progress.
PART = 1000


class Rows(NamedTuple):
    """Natural rows in the order of their file."""

    serialized: list  # records, bytes
    pairs: list  # of each row the segments in their true order, unmasked: two arrays of ids


def read_natural(path, record_format, unknown, shortest):
    """Reads the `Rows` with `shortest` pieces or more.

    Args:
        path, record_format: of the records.
        unknown: the id of [UNK], which the segments are without.
        shortest: pieces of both segments.
    """
    import tensorflow as tf

    from create_pretraining_data.records.reader import open_records, parsing_spec

    spec, rows = parsing_spec(record_format), Rows([], [])
    parsed = open_records(path).map(
        lambda record: (record, tf.io.parse_single_example(record, spec)),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    for record, fields in parsed.as_numpy_iterator():
        places, ids = segment_places(fields), unmasked_ids(fields)
        if sum(place.stop - place.start for place in places) < shortest:
            continue
        segments = [ids[place][ids[place] != unknown] for place in places]
        rows.serialized.append(record)
        rows.pairs.append(segments[::-1] if fields["next_sentence_labels"][0] else segments)
    return rows


def scores_of(pairs):
    """The rule's score of each row for the true order, [N]."""
    rule, scores = OverlapRule(pairs), []
    parts = [pairs[start : start + PART] for start in range(0, len(pairs), PART)]
    for part in with_progress(parts, "scoring", "thousands of rows"):
        scores += [rule.score(*pair) for pair in part]
    return np.array(scores)


def draw(rng, rows, count):
    """Draws `count` of the rows, a list, each as often as the others, give or take one."""
    passes = [rng.permutation(len(rows)) for _ in range(-(-count // len(rows)))]
    return [rows[index] for index in np.concatenate([[], *passes])[:count].astype(int)]


def mix(natural, spliced, arguments):
    """Draws the records of the mixture, in random order: a list of bytes.

    Args:
        natural: `Rows`.
        spliced: the records of splice.py, a list of bytes.
        arguments: the flags.

    Raises:
        InputError: no row is clear.
    """
    scores, rng = scores_of(natural.pairs), np.random.default_rng(arguments.random_seed)
    clear = [natural.serialized[index] for index in np.flatnonzero(scores >= arguments.least_score)]
    if not clear:
        raise InputError(
            f"--natural must hold rows with a score of {arguments.least_score:g} or more. "
            f"Received: {arguments.natural}, whose highest is {scores.max():.4g}"
        )
    right = np.mean(np.where(scores == 0, 0.5, scores > 0))
    print(f"{len(scores):,} natural rows, {len(clear):,} clear; the rule is right in {right:.1%}")
    records = draw(rng, clear, round(arguments.rows * arguments.clear))
    records += draw(rng, spliced, round(arguments.rows * arguments.spliced_share))
    records += draw(rng, natural.serialized, arguments.rows - len(records))
    return [records[index] for index in rng.permutation(len(records))]


def check_inputs(natural, spliced):
    """Returns the `RecordFormat` of both files, without token_boundary, and their tokenizer.

    Raises:
        InputError: they are not ordinary records of sentence order, or unlike.
    """
    from create_pretraining_data.records.reader import read_format, scan_records

    formats, tokenizers = [], []
    for flag, path in (("--natural", natural), ("--spliced", spliced)):
        record_format = read_format(path)
        check_kind(flag, path, record_format)
        scan_records(path)
        folder = tokenizer_beside(path)
        if folder is None:
            raise InputError(f"a tokenizer must lie beside the records. Received: none at {path}")
        formats.append(dataclasses.replace(record_format, token_boundary=False))
        tokenizers.append(load_tokenizer(folder))
    one, other = tokenizers
    if one.fingerprint() != other.fingerprint():
        raise InputError(
            "--natural and --spliced must have one tokenizer. "
            f"Received: different ones for {natural} and {spliced}"
        )
    for name in ("max_seq_length", "max_predictions_per_seq"):
        values = [getattr(each, name) for each in formats]
        if values[0] != values[1]:
            raise InputError(
                f"--natural and --spliced must have one --{name}. "
                f"Received: {values[0]} in {natural}, {values[1]} in {spliced}"
            )
    return formats[0], one


def without_token_boundary(records, record_format):
    """Encodes records again, a list of bytes, with the features of `record_format` alone."""
    import tensorflow as tf

    from create_pretraining_data.records.reader import parsing_spec

    parsed = tf.io.parse_example(records, parsing_spec(record_format))
    return encode_records({name: values.numpy() for name, values in parsed.items()}, record_format)


def write_mixture(arguments):
    """Writes the records, and their description beside them.

    Raises:
        InputError: the records are not of the right kind or format.
    """
    import_tensorflow()
    from create_pretraining_data.records.reader import open_records, read_format

    record_format, tokenizer = check_inputs(arguments.natural, arguments.spliced)
    natural = read_natural(
        arguments.natural, read_format(arguments.natural), tokenizer.unk_id, arguments.shortest
    )
    if not natural.pairs:
        raise InputError(
            f"--natural must hold rows of {arguments.shortest} pieces. "
            f"Received: {arguments.natural}, without any"
        )
    spliced = list(open_records(arguments.spliced).as_numpy_iterator())
    path, records = arguments.output_file, mix(natural, spliced, arguments)
    parts = [records[start : start + PART] for start in range(0, len(records), PART)]
    with atomic_write(path) as file:
        for part in with_progress(parts, "writing", "thousands of rows"):
            file.writelines(map(frame, without_token_boundary(part, record_format)))
    write_description(path, arguments, record_format, tokenizer)
    print(f"{len(records):,} rows: {path}")


def main():
    """Writes the records."""
    parser = argument_parser(__doc__)
    parser.add_argument("--natural", required=True, help="records of natural text")
    parser.add_argument("--spliced", required=True, help="records of splice.py")
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--clear", type=float, required=True, help="their share of the rows")
    parser.add_argument("--spliced_share", type=float, required=True)
    parser.add_argument("--least_score", type=float, required=True, help="of a clear row")
    parser.add_argument("--shortest", type=int, default=300, help="pieces of a natural row")
    parser.add_argument("--random_seed", type=int, default=1)
    parser.add_argument("--output_file", required=True)
    arguments = parser.parse_args()
    if arguments.rows < 1:
        parser.error("--rows must be at least 1")
    shares = arguments.clear, arguments.spliced_share
    if min(shares) < 0 or sum(shares) > 1:
        parser.error("--clear and --spliced_share must be 0 or more, 1 at most together")
    folder = os.path.dirname(os.path.abspath(arguments.output_file))
    try:
        make_writable(folder, "--output_file must be in a directory that can be written")
        write_mixture(arguments)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
