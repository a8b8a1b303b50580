"""Measures how fast texts are tokenized, beside Hugging Face tokenizers and tensorflow-text.

    python -m benchmarks.speed.tokenization --input_file=reviews.txt --vocabs=VOCAB,VOCAB,...

A VOCAB is a folder with tokenizer_config.json, measured with the switches in that file, or a "##"
vocab.txt, measured with every Korean switch, without the fallback, without switches, and as in
google-research/bert; what the switches need (jamo, the word-end marker) is added to a vocab.txt for
all contenders. Hugging Face's tokenizer has no such switches.

All contenders encode the same lines in one thread; they take turns, round after round, in one
process. Prints a Markdown table: the median of the rounds, the spread (interquartile range over the
median), and the speed relative to Hugging Face's batch call, as the median of the rounds' ratios.
"""

import argparse
import os
import statistics
import tempfile
import time
import warnings
from pathlib import Path

# Before the import of the libraries that read these.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

from benchmarks.common import median_and_spread, print_table
from tokenization import FullTokenizer, KoreanTokenizer, load_tokenizer

BATCH = 4096  # texts per call, so many that the cost of a call itself does not matter
MARKER = "\u2581"
KOREAN_SWITCHES = {
    "unknown": "character",
    "fold_width": True,
    "drop_invisible": True,
    "shorten_runs": 3,
    "word_end_marker": MARKER,
    "word_end_marker_at": "eojeol",
}
REFERENCE = "Hugging Face tokenizers, encode_batch"
HEADINGS = ["vocabulary", "", "seconds", "spread", "MB/s", "times Hugging Face"]


def full_vocabulary(path):
    """The vocabulary's pieces and those that the Korean switches need, without duplicates."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    initials = map(chr, range(0x1100, 0x1113))
    jamo = map(chr, (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3)))
    needed = [*initials, *("##" + character for character in jamo), MARKER, "##" + MARKER]
    return list(dict.fromkeys([*lines, *needed]))


def hugging_face(vocabulary):
    """Hugging Face's WordPiece tokenizer with BERT's normalizer, which keeps case and accents."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=200))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.BertNormalizer(lowercase=False, strip_accents=False)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def google_algorithm(vocabulary):
    """google-research/bert's algorithm in Python, from transformers: a function of a text."""
    from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer, WordpieceTokenizer

    ids = {token: index for index, token in enumerate(vocabulary)}
    basic = BasicTokenizer(do_lower_case=False)
    pieces = WordpieceTokenizer(ids, unk_token="[UNK]", max_input_chars_per_word=200)

    def encode(text):
        return [ids[piece] for word in basic.tokenize(text) for piece in pieces.tokenize(word)]

    return encode


def in_batches(encode, texts):
    """A function that encodes all texts, batch by batch."""
    parts = [texts[first : first + BATCH] for first in range(0, len(texts), BATCH)]
    return lambda: [encode(part) for part in parts]


def tokenizers_of(path, folder):
    """The vocabulary for all contenders, and this project's tokenizers by name.

    Args:
        path: a VOCAB.
        folder: where an extended vocabulary can be written.
    """
    if Path(path).is_dir():
        tokenizer = load_tokenizer(path)
        return list(tokenizer.vocab), {"its own switches": tokenizer}
    vocabulary = full_vocabulary(path)
    file = Path(folder) / "vocab.txt"
    file.write_text("\n".join(vocabulary), encoding="utf-8")
    return vocabulary, {
        "every Korean switch": KoreanTokenizer(file, jamo_fallback=True, **KOREAN_SWITCHES),
        "without the fallback": KoreanTokenizer(file, **KOREAN_SWITCHES),
        "no switch": KoreanTokenizer(file),
        "FullTokenizer, cased": FullTokenizer(file, do_lower_case=False),
    }


def contenders(vocabulary, tokenizers, texts):
    """Yields the name of each contender and a function that encodes all texts once."""
    import tensorflow as tf
    import tensorflow_text as tf_text

    theirs = hugging_face(vocabulary)
    fast_bert = tf_text.FastBertTokenizer(vocabulary, token_out_type=tf.int32)
    yield REFERENCE, in_batches(theirs.encode_batch, texts)
    yield "the same, encode_batch_fast", in_batches(theirs.encode_batch_fast, texts)
    yield "tensorflow-text, FastBertTokenizer", in_batches(fast_bert.tokenize, texts)
    for name, tokenizer in tokenizers.items():
        yield f"encode_batch, {name}", in_batches(tokenizer.encode_batch, texts)
    encoders = {
        f"encode (Python), {name}": tokenizer.encode for name, tokenizer in tokenizers.items()
    }
    encoders["google-research/bert's algorithm (Python)"] = google_algorithm(vocabulary)
    for name, encode in encoders.items():
        yield name, lambda encode=encode: list(map(encode, texts))


def take_turns(runs, rounds):
    """The seconds of each run in every round after a first one, which warms up; its last result."""
    seconds, results = {name: [] for name in runs}, {}
    for number in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            results[name] = run()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return seconds, results


def rows_of(path, texts, rounds):
    """Yields the rows of one vocabulary: all contenders."""
    megabytes = sum(len(text.encode("utf-8")) for text in texts) / 1e6
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds, _ = take_turns(dict(contenders(*tokenizers_of(path, folder), texts)), rounds)
    for name, taken in seconds.items():
        median, spread = median_and_spread(taken)
        ratios = [theirs / ours for theirs, ours in zip(seconds[REFERENCE], taken, strict=True)]
        yield [
            Path(path).name,
            name,
            f"{median:.2f}",
            f"{spread:.0%}",
            f"{megabytes / median:.1f}",
            f"{statistics.median(ratios):.1f}",
        ]


def read_texts(path, column, number):
    """The first lines of a file, or one column of them."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")[:number]
    return lines if column is None else [line.split("\t")[column] for line in lines if line]


def report(vocabs, texts, rounds):
    """Measures, and prints the table."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    print(f"{len(texts)} texts, {rounds} rounds, one thread\n", flush=True)
    rows = (row for path in vocabs for row in rows_of(path, texts, rounds))
    print_table(HEADINGS, rows)


def main():
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input_file", required=True, help="UTF-8, one text a line")
    parser.add_argument("--column", type=int, help="of tab-separated lines, from 0")
    parser.add_argument("--vocabs", required=True, help="vocabularies, separated by commas")
    parser.add_argument("--texts", type=int, default=40_000, help="how many lines are used")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    texts = read_texts(arguments.input_file, arguments.column, arguments.texts)
    report(arguments.vocabs.split(","), texts, arguments.rounds)


if __name__ == "__main__":
    main()
