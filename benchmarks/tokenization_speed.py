"""Measures how fast texts become ids, beside Hugging Face tokenizers and tensorflow-text.

    python benchmarks/tokenization_speed.py --input_file=reviews.txt --vocab_file=vocab.txt

Every contender encodes the same lines in one thread; they take turns, round after round, in one
process. Prints a Markdown table: the median of the rounds, the spread (quartiles over the median),
and how many times faster than Hugging Face's batch call, as the median of the rounds' ratios.

The vocabulary is a "##" one. What the Korean switches need (jamo, the word-end marker) is added to
it for all contenders alike. Hugging Face's has no such switches; it only tokenizes.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

# Before the libraries are imported, which read these.
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

from common import median_and_spread, print_table

from tokenization import FullTokenizer, KoreanTokenizer

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


def contenders(vocabulary, vocab_file, texts):
    """Pairs of a name and a function that encodes all texts once."""
    import tensorflow as tf
    import tensorflow_text as tf_text

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    theirs = hugging_face(vocabulary)
    fast_bert = tf_text.FastBertTokenizer(vocabulary, token_out_type=tf.int32)
    made = {
        "every Korean switch": KoreanTokenizer(vocab_file, jamo_fallback=True, **KOREAN_SWITCHES),
        "without the fallback": KoreanTokenizer(vocab_file, **KOREAN_SWITCHES),
        "no switch": KoreanTokenizer(vocab_file),
        "FullTokenizer, cased": FullTokenizer(vocab_file, do_lower_case=False),
    }
    yield REFERENCE, in_batches(theirs.encode_batch, texts)
    yield "the same, encode_batch_fast", in_batches(theirs.encode_batch_fast, texts)
    yield "tensorflow-text, FastBertTokenizer", in_batches(fast_bert.tokenize, texts)
    for name, tokenizer in made.items():
        yield f"encode_batch, {name}", in_batches(tokenizer.encode_batch, texts)
    encoders = {f"encode (Python), {name}": made[name].encode for name in made}
    encoders["google-research/bert's algorithm (Python)"] = google_algorithm(vocabulary)
    for name, encode in encoders.items():
        yield name, lambda encode=encode: list(map(encode, texts))


def main():
    """Measures, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--input_file", required=True, help="UTF-8, one text a line")
    parser.add_argument("--column", type=int, help="of tab-separated lines, from 0")
    parser.add_argument("--vocab_file", required=True)
    parser.add_argument("--texts", type=int, default=40_000, help="how many lines are used")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    lines = Path(arguments.input_file).read_text(encoding="utf-8").split("\n")[: arguments.texts]
    if arguments.column is not None:
        lines = [line.split("\t")[arguments.column] for line in lines if line]
    megabytes = sum(len(line.encode("utf-8")) for line in lines) / 1e6
    vocabulary = full_vocabulary(arguments.vocab_file)
    seconds = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "vocab.txt"
        path.write_text("\n".join(vocabulary), encoding="utf-8")
        runs = dict(contenders(vocabulary, path, lines))
        for round_ in range(arguments.rounds + 1):
            for name, run in runs.items():
                start = time.perf_counter()
                run()
                if round_:  # the first one warms up
                    seconds.setdefault(name, []).append(time.perf_counter() - start)
    rows = []
    for name, taken in seconds.items():
        median, spread = median_and_spread(taken)
        ratios = [theirs / ours for theirs, ours in zip(seconds[REFERENCE], taken, strict=True)]
        rows.append(
            (
                name,
                f"{median:.2f}",
                f"{spread:.0%}",
                f"{megabytes / median:.1f}",
                f"{statistics.median(ratios):.1f}",
            )
        )
    print(f"{len(lines)} texts, {megabytes:.1f} MB, {arguments.rounds} rounds")
    print_table(["", "seconds", "spread", "MB/s", "times Hugging Face"], rows)


if __name__ == "__main__":
    sys.exit(main())
