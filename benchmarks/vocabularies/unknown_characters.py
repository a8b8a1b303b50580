"""Measures what bytes instead of [UNK] cost.

    python -m benchmarks.vocabularies.unknown_characters \\
        --learn_from=wiki.txt --input_file=other_wiki.txt.gz

Learns two vocabularies from the same text, --unknown=character and --unknown=bytes, cuts text that
neither has seen, and prints a Markdown table: the shares of pieces that are [UNK] and that are
bytes, pieces per eojeol, and the speed of the Python tokenizer, measured by turns in one thread.
"""

import functools
import gzip
import os
import statistics
import tempfile
from pathlib import Path

from benchmarks.common import flag, launch, print_table, seconds_of, take_turns
from tokenization import load_tokenizer
from tokenization.byte_pieces import byte_of
from tokenization.vocab_learning.learn import LearningSettings, learn_vocabulary, write_vocabulary
from tokenization.vocab_learning.text_sample import TextFile, split_lines

UNKNOWNS = ("character", "bytes")
HEADINGS = [
    "--unknown", "[UNK]", "bytes", "pieces per eojeol", "lines with either", "Python, MB/s",
]  # fmt: skip
FLAGS = {
    "learn_from": flag(str, "text for the vocabularies"),
    "input_file": flag(str, "text that they have not seen"),
    "vocab_size": 16000,
    "analyser": flag("none", choices=("kiwi", "none")),
    "megabytes": flag(10.0, "of the text that is cut"),
}


def main(arguments):
    """Measures, prints the table."""
    lines = read_lines(arguments.input_file, int(arguments.megabytes * 1e6))
    with tempfile.TemporaryDirectory() as folder:
        tokenizers = {
            unknown: learn(arguments, unknown, Path(folder) / unknown) for unknown in UNKNOWNS
        }
    print_table(HEADINGS, rows(tokenizers, lines, arguments.rounds))


def read_lines(path, most_bytes):
    """The first lines of a text, of about so many bytes; empty ones are left out."""
    opener = gzip.open if path.endswith(".gz") else open
    lines, size = [], 0
    with opener(path, "rb") as file:
        for line in file:
            size += len(line)
            if size > most_bytes:
                break
            lines.append(line.decode("utf-8").strip())
    return [line for line in lines if line]


def learn(arguments, unknown, folder):
    """The tokenizer that is learned with this choice for unknown characters."""
    path = arguments.learn_from

    def lines():
        with open(path, "rb") as file:
            yield from split_lines(file)

    text = TextFile(path, os.path.getsize(path), lines)
    settings = LearningSettings(
        vocab_size=arguments.vocab_size, analyser=arguments.analyser, unknown=unknown
    )
    write_vocabulary(learn_vocabulary([text], settings), folder)
    return load_tokenizer(folder)


def rows(tokenizers, lines, rounds):
    """The table's rows."""
    runs = {
        unknown: functools.partial(seconds_of, lambda t=t: [t.encode(line) for line in lines])
        for unknown, t in tokenizers.items()
    }
    seconds = take_turns(runs, rounds)
    megabytes = sum(len(line.encode("utf-8")) for line in lines) / 1e6
    eojeols = sum(len(line.split()) for line in lines)
    for unknown, tokenizer in tokenizers.items():
        prefix = tokenizer.options.continuation_prefix
        byte_ids = {i for token, i in tokenizer.vocab.items() if byte_of(token, prefix) is not None}
        count = unknowns = by_bytes = affected = 0
        for line in lines:
            ids = tokenizer.encode(line)
            bytes_here = sum(index in byte_ids for index in ids)
            unknowns_here = ids.count(tokenizer.unk_id)
            count += len(ids)
            unknowns += unknowns_here
            by_bytes += bytes_here
            affected += bool(bytes_here or unknowns_here)
        speed = megabytes / statistics.median(seconds[unknown])
        yield [
            unknown, f"{unknowns / count:.3%}", f"{by_bytes / count:.3%}", f"{count / eojeols:.3f}",
            f"{affected / len(lines):.2%}", f"{speed:.1f}",
        ]  # fmt: skip


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=3)
