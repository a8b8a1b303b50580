"""Makes the tokenized text from which lessons draw their rows.

    python benchmarks/sentence_order/lesson_text.py --input_file=work/train.txt \\
        --held_out=work/heldout.txt --tokenizer_dir=reference_model --least_score=11 \\
        --output_file=work/text.npz.xz

The result is what `benchmarks/gpu_step train --text` draws its rows from. Clear rows are natural
pairs for which the untrained rule of rule.py is right and sure: its score is --least_score or more.
With 11, a quarter of the pairs of Wikipedia's articles are clear.
"""

import os
import random
import sys
from pathlib import Path

import numpy as np

# Not first: benchmarks/tokenization.py must not hide the package.
sys.path.append(str(Path(__file__).parents[1]))

from common import argument_parser, run_writer

from bert_common.errors import InputError
from bert_common.progress import with_progress
from create_pretraining_data.instances.pairs import LengthBalance, PairRules, make_pairs
from create_pretraining_data.instances.text import tokenize_documents
from run_scripts.reference.text import documents
from sentence_order.rule import OverlapRule
from sentence_order.text_file import SPECIAL, WORD_START, TextFile, write_text
from tokenization import load_tokenizer

# The least values of flags.
LEAST = {"max_seq_length": 16, "shortest": 2, "passes": 1, "random_seed": 0}


def tokenize(path, tokenizer):
    """Tokenizes a text file; returns a `TokenizedText`."""
    found = list(documents([path]))
    if not found:
        raise InputError(f"a text must have documents. Received: none in {path}")
    return tokenize_documents(with_progress(found, "tokenizing", "documents"), tokenizer)


def clear_pairs(text, tokenizer, arguments):
    """The natural pairs that are clear, int64 [N, 5]; half of them swapped, as drawn."""
    rules = PairRules("sop", arguments.max_seq_length, 0.0, tokenizer.cls_id, tokenizer.sep_id)
    rng, balance = random.Random(arguments.random_seed), LengthBalance()
    pairs = []
    for _ in range(arguments.passes):
        for index in range(text.num_documents):
            if text.documents[index + 1] - text.documents[index] > 1:
                pairs += make_pairs(text, index, rules, balance, rng)
    pairs = [p for p in pairs if p[1] - p[0] + p[3] - p[2] >= arguments.shortest]
    known = text.ids != tokenizer.unk_id
    segments = [[text.ids[a:b][known[a:b]], text.ids[c:d][known[c:d]]] for a, b, c, d, _ in pairs]
    ordered = [s[::-1] if pair.label else s for s, pair in zip(segments, pairs, strict=True)]
    rule = OverlapRule(ordered)
    scores = np.array([rule.score(*pair) for pair in with_progress(ordered, "scoring", "rows")])
    found = np.array(pairs, np.int64).reshape(-1, 5)  # [N, 5]
    right = np.where(scores == 0, 0.5, scores > 0).sum() / max(len(scores), 1)
    kept = found[scores >= arguments.least_score]
    print(f"{len(scores):,} natural rows, {len(kept):,} clear; the rule is right in {right:.1%}")
    return kept


def write(arguments):
    """Writes the file.

    Raises:
        InputError: a text without documents, or a vocabulary that is too large.
    """
    tokenizer = load_tokenizer(arguments.tokenizer_dir)
    if tokenizer.vocab_size > WORD_START:
        raise InputError(
            f"the tokenizer must have at most {WORD_START:,} pieces. "
            f"Received: {tokenizer.vocab_size:,}"
        )
    train, held_out = (
        tokenize(path, tokenizer) for path in (arguments.input_file, arguments.held_out)
    )
    special = {name: getattr(tokenizer, name) for name in SPECIAL}
    clear = clear_pairs(train, tokenizer, arguments)
    write_text(arguments.output_file, TextFile(train, held_out, clear, special))
    size = os.path.getsize(arguments.output_file) / 1e6
    print(f"{len(train.ids):,} pieces, {size:.1f} MB: {arguments.output_file}")


def main():
    """Writes the file."""
    parser = argument_parser(__doc__)
    parser.add_argument("--input_file", required=True, help="a text to train on")
    parser.add_argument("--held_out", required=True, help="a text to measure on")
    parser.add_argument("--tokenizer_dir", required=True)
    parser.add_argument("--max_seq_length", type=int, default=512)
    parser.add_argument("--least_score", type=float, required=True, help="of a clear row")
    parser.add_argument("--shortest", type=int, default=300, help="pieces of a clear row")
    parser.add_argument("--passes", type=int, default=2, help="over the documents, for clear rows")
    parser.add_argument("--random_seed", type=int, default=1)
    parser.add_argument("--output_file", required=True)
    run_writer(parser, LEAST, write)


if __name__ == "__main__":
    main()
