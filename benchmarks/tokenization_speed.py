"""Measures how fast texts become ids, beside Hugging Face tokenizers and tensorflow-text.

    python benchmarks/tokenization_speed.py --input_file=reviews.txt --vocabs=VOCAB,VOCAB,...

A VOCAB is a folder with tokenizer_config.json, measured with the switches that it has, or a "##"
vocab.txt, measured with every Korean switch, without the fallback, with none, and as
google-research/bert has it; what the switches need (jamo, the word-end marker) is added to the
latter for all contenders alike. Hugging Face's has no such switches; it only tokenizes.

Every contender encodes the same lines in one thread; they take turns, round after round, in one
process. Prints a Markdown table: the median of the rounds, the spread (quartiles over the median),
and how many times faster than Hugging Face's batch call, as the median of the rounds' ratios.
"""

import argparse
import os
import statistics
import tempfile
import time
import warnings
from pathlib import Path

# Before the libraries are imported, which read these.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

from common import median_and_spread, print_table

from tokenization import FullTokenizer, KoreanTokenizer, load_tokenizer

BATCH = 4096  # texts in a call; what a call costs by itself no longer shows
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
    """The vocabulary's lines, then what the Korean switches need, each once."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    initials = map(chr, range(0x1100, 0x1113))
    jamo = map(chr, (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A8, 0x11C3)))
    needed = [*initials, *("##" + character for character in jamo), MARKER, "##" + MARKER]
    return list(dict.fromkeys([*lines, *needed]))


def hugging_face(vocabulary):
    """Its WordPiece with BERT's normaliser, which keeps case and accents."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=200))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.BertNormalizer(lowercase=False, strip_accents=False)]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def google_algorithm(vocabulary):
    """google-research/bert's own two passes in Python, as transformers keeps them: text to ids."""
    from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer, WordpieceTokenizer

    ids = {token: index for index, token in enumerate(vocabulary)}
    basic = BasicTokenizer(do_lower_case=False)
    pieces = WordpieceTokenizer(ids, unk_token="[UNK]", max_input_chars_per_word=200)

    def encode(text):
        return [ids[piece] for word in basic.tokenize(text) for piece in pieces.tokenize(word)]

    return encode


def in_batches(encode, texts):
    """A function that encodes all texts, a batch at a time."""
    parts = [texts[first : first + BATCH] for first in range(0, len(texts), BATCH)]
    return lambda: [encode(part) for part in parts]


def tokenizers_of(path, folder):
    """The vocabulary that all contenders get, and this project's tokenizers by name.

    Args:
        path: a VOCAB.
        folder: where a vocabulary with what the switches need can be written.
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


def contenders(vocabulary, made, texts):
    """Pairs of a name and a function that encodes all texts once."""
    import tensorflow as tf
    import tensorflow_text as tf_text

    theirs = hugging_face(vocabulary)
    fast_bert = tf_text.FastBertTokenizer(vocabulary, token_out_type=tf.int32)
    yield REFERENCE, in_batches(theirs.encode_batch, texts)
    yield "the same, encode_batch_fast", in_batches(theirs.encode_batch_fast, texts)
    yield "tensorflow-text, FastBertTokenizer", in_batches(fast_bert.tokenize, texts)
    for name, tokenizer in made.items():
        yield f"encode_batch, {name}", in_batches(tokenizer.encode_batch, texts)
    encoders = {f"encode (Python), {name}": made[name].encode for name in made}
    encoders["google-research/bert's algorithm (Python)"] = google_algorithm(vocabulary)
    for name, encode in encoders.items():
        yield name, lambda encode=encode: list(map(encode, texts))


def take_turns(runs, rounds):
    """The seconds of each run, round by round; the first round, which warms up, left out."""
    seconds = {name: [] for name in runs}
    for round_ in range(rounds + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            if round_:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def rows_of(path, texts, rounds):
    """Rows of the table: one vocabulary, all contenders."""
    megabytes = sum(len(text.encode("utf-8")) for text in texts) / 1e6
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seconds = take_turns(dict(contenders(*tokenizers_of(path, folder), texts)), rounds)
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
    """The first lines of a file, or a column of them."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")[:number]
    return lines if column is None else [line.split("\t")[column] for line in lines if line]


def report(vocabs, texts, rounds):
    """Measures, prints the table."""
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
