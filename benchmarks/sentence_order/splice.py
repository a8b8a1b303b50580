"""Makes rows whose order shows in their subjects: a first lesson before that of natural text.

    python benchmarks/sentence_order/splice.py --input_file=work/text.txt --boundary=middle \\
        --tokenizer_dir=reference_model --max_seq_length=128 --rows=100000 --random_seed=1 \\
        --output_file=work/middle_128.tfrecord

Where neighbouring passages belong together, their words show it, but weakly: from such text a small
model that starts without this ability does not learn sentence order. Here it is clear. A row is
made of passages x, y and z of three documents. One segment is x and the beginning of y, the other
the end of y and z; half of the rows have them swapped (label 1). In order, the passages beside the
boundary are of one document; swapped, those at the ends of the row are. The two passages of a
segment are equally long. A segment begins where a sentence begins, and ends where one ends, as in
natural text: cut within a sentence, its grammar could show the order. With --boundary=middle all
segments are equally long, so that the passages have fixed places: this is learned first. With
--boundary=anywhere the first segment has 20 to 80 % of the row. The records are those of
create_pretraining_data.py --objective=sop --packing=false --masking=static without masked words
(--masked_lm_prob=0), for run_pretraining.py.
"""

import itertools
import sys
from pathlib import Path

import numpy as np

# Not first: a test imports this file, and benchmarks/tokenization.py must not hide the package from
# its worker processes.
sys.path.append(str(Path(__file__).parents[1]))

from common import argument_parser, run_writer

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.progress import with_progress
from create_pretraining_data.records.encoding import encode_records
from create_pretraining_data.records.record_format import RecordFormat
from create_pretraining_data.records.tfrecord import frame
from run_scripts.reference.text import documents
from sentence_order.passages import Document, Passages, room_of, splice
from sentence_order.rows import write_description
from tokenization import load_tokenizer

# Rows that are encoded together.
PART = 1000

# The least values of flags.
LEAST = {"max_seq_length": 16, "rows": 1, "documents": 3}

# Places for predictions in a record, all unused.
PREDICTIONS = 8


def read_documents(path, tokenizer, shortest, limit):
    """Reads the documents of a text that have `shortest` pieces, a list of `Document`.

    Args:
        path: a text file, documents separated by empty lines.
        tokenizer: its tokenizer.
        shortest: pieces that a document must have.
        limit: documents to read.

    Raises:
        InputError: fewer than three documents are long enough.
    """
    found = []
    for sentences in itertools.islice(documents([path]), limit):
        ids = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(each)) for each in sentences]
        ends = np.cumsum([len(sentence) for sentence in ids])
        if ends[-1] >= shortest:
            found.append(Document(np.concatenate(ids).astype(np.int32), ends))
    if len(found) < 3:
        raise InputError(
            f"--input_file must hold three documents of {shortest} pieces. "
            f"Received: {path}, with {len(found)}"
        )
    return found


def features(segments, label, record_format, tokenizer):
    """The features of a record with the segments in this order, a dict name -> array."""
    length, places = record_format.max_seq_length, record_format.max_predictions_per_seq
    first, second = segments
    ids = [tokenizer.cls_id, *first, tokenizer.sep_id, *second, tokenizer.sep_id]
    used, start = len(ids), len(first) + 2
    position = np.arange(length)
    return {
        "input_ids": np.pad(np.array(ids, np.int32), (0, length - used)),
        "input_mask": (position < used).astype(np.int32),
        "segment_ids": ((position >= start) & (position < used)).astype(np.int32),
        "masked_lm_positions": np.zeros(places, np.int32),
        "masked_lm_ids": np.zeros(places, np.int32),
        "masked_lm_weights": np.zeros(places, np.float32),
        "next_sentence_labels": np.array([label], np.int32),
    }


def write_rows(arguments):
    """Writes the records, and their description beside them.

    Raises:
        InputError: the text has too few long documents.
    """
    tokenizer = load_tokenizer(arguments.tokenizer_dir)
    rng = np.random.default_rng(arguments.random_seed)
    room = room_of(arguments.max_seq_length)
    found = read_documents(arguments.input_file, tokenizer, room, arguments.documents)
    passages = Passages(found, rng)
    record_format = RecordFormat(
        arguments.max_seq_length,
        PREDICTIONS,
        sentence_label=True,
        token_boundary=False,
    )
    middle, path = arguments.boundary == "middle", arguments.output_file
    with atomic_write(path) as file:
        starts = range(0, arguments.rows, PART)
        for start in with_progress(starts, "splicing", "thousands of rows"):
            rows = []
            for _ in range(start, min(start + PART, arguments.rows)):
                segments, label = splice(passages, room, middle), int(rng.integers(2))
                ordered = segments[::-1] if label else segments
                rows.append(features(ordered, label, record_format, tokenizer))
            stacked = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
            file.writelines(map(frame, encode_records(stacked, record_format)))
    write_description(path, arguments, record_format, tokenizer)
    print(f"{arguments.rows:,} rows of {len(found):,} documents: {path}")


def main():
    """Writes the records."""
    parser = argument_parser(__doc__)
    parser.add_argument("--input_file", required=True, help="a text, as for records")
    parser.add_argument("--tokenizer_dir", required=True)
    parser.add_argument("--max_seq_length", type=int, required=True)
    parser.add_argument("--boundary", choices=("middle", "anywhere"), required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--documents", type=int, default=20_000, help="of the text, to be read")
    parser.add_argument("--random_seed", type=int, default=1)
    parser.add_argument("--output_file", required=True)
    run_writer(parser, LEAST, write_rows)


if __name__ == "__main__":
    main()
