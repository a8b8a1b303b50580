"""Measures how fast questions are turned into windows, beside transformers' fast tokenizers.

    python -m benchmarks.speed.question_features \\
        --input_file=KorQuAD_v1.0_dev.json --tokenizer_dir=VOCAB

VOCAB is a folder with tokenizer_config.json and a "##" vocabulary. The tokenizer of transformers
gets the same pieces without this project's Korean switches, and makes windows as in its SQuAD
example: return_overflowing_tokens, stride, return_offsets_mapping. It tokenizes a text again for
each question about it. All its windows overlap by the same number of pieces; here that is the
number for which they begin doc_stride apart for a question of mean length.

The contenders take turns, round after round, in one process; the one with two processes starts them
each time. Prints a Markdown table: the median of the rounds, the spread (interquartile range over
the median), questions per second, windows.
"""

import functools
import os
import statistics

# Before the import of the libraries that read it.
os.environ["RAYON_NUM_THREADS"] = "2"

from benchmarks.common import cells, launch, print_table, seconds_of, take_turns
from finetuning.question_answering.data import read_questions
from finetuning.question_answering.windows import SPECIALS, encode_questions, make_windows
from tokenization import load_tokenizer

MAX_SEQ_LENGTH, DOC_STRIDE, MAX_QUERY_LENGTH = 384, 128, 64  # google-research/bert's defaults
BATCH = 1000  # questions per call of transformers, as in its example
HEADINGS = ["", "seconds", "spread", "questions a second", "windows"]


def ours(tokenizer, questions, workers):
    """A function that makes all windows once, by this project."""

    def run():
        encoded = encode_questions(tokenizer, questions, MAX_QUERY_LENGTH, workers)
        windows, _ = make_windows(questions, encoded, tokenizer, MAX_SEQ_LENGTH, DOC_STRIDE)
        return len(windows)

    return run


def theirs(tokenizer, questions, threads):
    """A function that makes all windows once, by transformers."""
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    inner = hugging_face(list(tokenizer.vocab))
    special = [("[CLS]", tokenizer.cls_id), ("[SEP]", tokenizer.sep_id)]
    inner.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=inner, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        pad_token="[PAD]", mask_token="[MASK]",
    )  # fmt: skip
    lengths = [len(tokenizer.encode(entry.question)) for entry in questions]
    room = MAX_SEQ_LENGTH - SPECIALS
    overlap = min(room - sum(lengths) // len(lengths) - DOC_STRIDE, room - max(lengths) - 1)

    def run():
        os.environ["TOKENIZERS_PARALLELISM"] = "true" if threads > 1 else "false"
        count = 0
        for first in range(0, len(questions), BATCH):
            part = questions[first : first + BATCH]
            windows = fast(
                [entry.question for entry in part],
                [entry.context for entry in part],
                truncation="only_second",
                max_length=MAX_SEQ_LENGTH,
                stride=overlap,
                return_overflowing_tokens=True,
                return_offsets_mapping=True,
            )
            count += len(windows["input_ids"])
        return count

    return run


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


def main(arguments):
    """Measures, and prints the table."""
    tokenizer = load_tokenizer(arguments.tokenizer_dir)
    questions, _ = read_questions(arguments.input_file, version_2_with_negative=True)
    runs = {
        "this project, one process": ours(tokenizer, questions, 1),
        "this project, two processes": ours(tokenizer, questions, 2),
        "transformers, one thread": theirs(tokenizer, questions, 1),
        "transformers, two threads": theirs(tokenizer, questions, 2),
    }
    windows = {name: run() for name, run in runs.items()}  # warms up
    timed = {name: functools.partial(seconds_of, run) for name, run in runs.items()}
    seconds = take_turns(timed, arguments.rounds)
    print(f"{len(questions):,} questions, {arguments.rounds} rounds\n", flush=True)
    print_table(
        HEADINGS,
        (
            [
                name, *cells(taken, ".2f"), f"{len(questions) / statistics.median(taken):,.0f}",
                f"{windows[name]:,}",
            ]
            for name, taken in seconds.items()
        ),
    )  # fmt: skip


if __name__ == "__main__":
    launch(main, __doc__, {"input_file": str, "tokenizer_dir": str}, rounds=5)
