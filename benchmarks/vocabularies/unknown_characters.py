"""Measures what bytes instead of [UNK] cost, and whether all forms of a tokenizer give equal ids.

    python -m benchmarks.vocabularies.unknown_characters \\
        --learn_from=wiki.txt --input_file=other_wiki.txt.gz

Learns two vocabularies from the same text, --unknown=character and --unknown=bytes, cuts text that
neither has seen, and prints a Markdown table: the shares of pieces that are [UNK] and that are
bytes, pieces per eojeol, and the speeds of the Python tokenizer, of its TensorFlow graph and of the
tokenizer that is exported for transformers. Both are measured by turns in one process and thread.
Before that, the ids of the three forms are compared on lines of the text and on hostile strings,
which are decoded again too; a difference ends the program. Needs transformers (the extra bench).
"""

import argparse
import gzip
import os
import random
import tempfile
import time
from pathlib import Path

# Before the import of the libraries that read these.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["HF_HUB_OFFLINE"] = "1"

from benchmarks.common import median_and_spread, print_table
from bert_common.errors import InputError
from model_formats.huggingface.tokenizer_files import write_tokenizer
from tokenization import load_tokenizer
from tokenization.byte_pieces import byte_of
from tokenization.tf_graph.graph import GraphTokenizer
from tokenization.vocab_learning.learn import LearningSettings, learn_vocabulary, write_vocabulary
from tokenization.vocab_learning.text_sample import TextFile, split_lines

UNKNOWNS = ("character", "bytes")
BATCH = 4096  # texts per call of the graph
HEADINGS = [
    "--unknown", "[UNK]", "bytes", "pieces per eojeol", "lines with either", "Python, MB/s",
    "graph, MB/s", "exported, MB/s",
]  # fmt: skip

# What such strings are made of: emoji of several code points, old and decomposed Hangul, Hanja of
# the extensions, marks by themselves, forms that NFKC changes, spelled special tokens, controls.
HOSTILE = (
    "👨\u200d👩\u200d👧", "👍🏽", "🇰🇷", "🏴\U000e0067\U000e0062\U000e007f", "❤\ufe0f",
    "😀", "ᄒᆞᆫ글", "\u1112\u1161\u11ab", "\ua960\u1161", "\u115f\u1160", "𠀀", "𠮷",
    "豈", "\u0301", "\u0323\u0301", "\u20dd", "e\u0301", "ｋ１", "①", "½", "㎏", "ﾡ",
    "[UNK]", "[MASK]", "<0xF0>", "##<0xF0>", "##", "\u200b", "\ufeff", "\x00", "\u00ad",
    "\ud800", "\ufffd", "\u0378", "\U0010ffff", "\ue000", "⊠", "\u2028", "\u3000", "ΑΣ",
    "İ", "ㅋㅋ", "뷁",
)  # fmt: skip


def main():
    """Parses the arguments, compares, measures, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learn_from", required=True, help="text for the vocabularies")
    parser.add_argument("--input_file", required=True, help="text that they have not seen")
    parser.add_argument("--vocab_size", type=int, default=16000)
    parser.add_argument("--analyser", default="none", choices=("kiwi", "none"))
    parser.add_argument("--megabytes", type=float, default=10, help="of the text that is cut")
    parser.add_argument("--lines", type=int, default=20_000, help="whose ids are compared")
    parser.add_argument("--strings", type=int, default=2000, help="hostile ones, likewise")
    parser.add_argument("--rounds", type=int, default=3, help="0: compares ids alone")
    arguments = parser.parse_args()
    lines = read_lines(arguments.input_file, int(arguments.megabytes * 1e6))
    strings = hostile_strings(arguments.strings, lines)
    with tempfile.TemporaryDirectory() as folder:
        forms = {
            unknown: three_forms(learn(arguments, unknown, Path(folder) / unknown))
            for unknown in UNKNOWNS
        }
        for unknown, encoders in forms.items():
            for name, texts in (("lines", lines[: arguments.lines]), ("strings", strings)):
                compare(encoders, texts)
                print(f"{unknown}: ids of the three forms are equal on {len(texts):,} {name}")
        print_table(HEADINGS, rows(forms, lines, arguments.rounds))


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


def hostile_strings(count, lines, seed=1):
    """Strings of hostile parts, characters of all of Unicode and parts of lines."""
    rng, strings = random.Random(seed), []
    for _ in range(count):
        parts = rng.choices(HOSTILE, k=rng.randint(1, 6))
        parts += [chr(rng.randrange(0x110000)) for _ in range(rng.randint(0, 4))]
        line = rng.choice(lines)
        start = rng.randrange(len(line))
        parts += [
            line[start : start + rng.randint(0, 9)],
            *rng.choices(" .,!", k=rng.randint(0, 3)),
        ]
        rng.shuffle(parts)
        strings.append("".join(parts))
    return strings


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


def three_forms(tokenizer):
    """The tokenizer, and functions from texts to ids by Python, the graph and the export."""
    from transformers import AutoTokenizer

    graph = GraphTokenizer(tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        write_tokenizer(tokenizer, folder, 512)
        # A text that spells "[MASK]" has no special token here.
        exported = AutoTokenizer.from_pretrained(
            folder, trust_remote_code=True, split_special_tokens=True
        )

    def by_graph(texts):
        rows = []
        for first in range(0, len(texts), BATCH):
            rows.append(graph.encode_batch(texts[first : first + BATCH]))
        return rows

    return {
        "tokenizer": tokenizer,
        "Python": lambda texts: [tokenizer.encode(text) for text in texts],
        "graph": by_graph,
        "exported": lambda texts: [exported.encode(t, add_special_tokens=False) for t in texts],
    }


def compare(encoders, texts):
    """Ends the program at the first text whose ids differ, or that does not come back."""
    tokenizer = encoders["tokenizer"]
    utf8 = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
    found = {
        "graph": [row for batch in encoders["graph"](utf8) for row in batch.to_list()],
        "exported": encoders["exported"](texts),
    }
    plain = encoders["Python"](utf8)
    for place, (text, ids) in enumerate(zip(texts, encoders["Python"](texts), strict=True)):
        wrong = [
            name
            for name, expected in (("graph", plain[place]), ("exported", ids))
            if found[name][place] != expected
        ]
        words = " ".join(tokenizer.basic_tokens(text))
        by_bytes = tokenizer.options.unknown == "bytes"
        if by_bytes and (tokenizer.unk_id in ids or tokenizer.decode(ids) != words):
            wrong.append("decode")
        if wrong:
            raise InputError(f"all forms must give equal ids. Received: {wrong} on {text!r}")


def rows(forms, lines, rounds):
    """The table's rows."""
    megabytes = sum(len(line.encode("utf-8")) for line in lines) / 1e6
    seconds = {(unknown, name): [] for unknown in forms for name in ("Python", "graph", "exported")}
    for _ in range(rounds):
        for unknown, name in seconds:
            encode, started = forms[unknown][name], time.perf_counter()
            encode(lines)
            seconds[unknown, name].append(time.perf_counter() - started)
    eojeols = sum(len(line.split()) for line in lines)
    for unknown, encoders in forms.items():
        tokenizer = encoders["tokenizer"]
        prefix = tokenizer.options.continuation_prefix
        byte_ids = {i for token, i in tokenizer.vocab.items() if byte_of(token, prefix) is not None}
        count = unknowns = by_bytes = affected = 0
        for line in lines:
            ids = tokenizer.encode(line)
            bytes_here = sum(index in byte_ids for index in ids)
            unknowns_here = ids.count(tokenizer.unk_id)
            count, unknowns, by_bytes = (
                count + len(ids),
                unknowns + unknowns_here,
                by_bytes + bytes_here,
            )
            affected += bool(bytes_here or unknowns_here)
        speeds = [
            f"{megabytes / median_and_spread(seconds[unknown, name])[0]:.1f}" if rounds else ""
            for name in ("Python", "graph", "exported")
        ]
        yield [
            unknown, f"{unknowns / count:.3%}", f"{by_bytes / count:.3%}", f"{count / eojeols:.3f}",
            f"{affected / len(lines):.2%}", *speeds,
        ]  # fmt: skip


if __name__ == "__main__":
    main()
