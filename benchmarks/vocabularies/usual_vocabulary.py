"""Learns the usual vocabulary, to compare with: by Hugging Face's WordPiece trainer.

    python -m benchmarks.vocabularies.usual_vocabulary --input_file=text.txt --output_dir=usual

It uses `BertWordPieceTokenizer` of the package tokenizers (a dependency of transformers) with its
defaults, except for what is usual for Korean: cased, since its lower-casing decomposes Hangul, and
an alphabet of 6,000 characters instead of 1,000, with which every word with a rarer syllable would
be [UNK]. Vocabularies of less than 16,000 pieces get fewer characters, since most need two pieces,
one for the beginning of a word. The folder that it writes can be given as `--tokenizer_dir`.
"""

import json
import sys
from pathlib import Path

from benchmarks.common import flag, launch
from run_scripts.flags.paths import expand_globs
from tokenization import FullTokenizer, InputError, save_tokenizer

ALPHABET = 6000  # at most so many of the text's most frequent characters
TRAINER = {"min_frequency": 2, "wordpieces_prefix": "##"}


def trainer_options(vocab_size):
    """The options of `BertWordPieceTokenizer.train`, as keyword arguments.

    With two pieces for each, characters take at most three quarters of the vocabulary: the trainer
    makes pieces of all of them first, and of 8,000 they would leave nothing.
    """
    return {**TRAINER, "limit_alphabet": min(ALPHABET, vocab_size * 3 // 8)}


def learn(files, output_dir, vocab_size):
    """Learns a vocabulary; writes vocab.txt and tokenizer_config.json; the `FullTokenizer` of it.

    Raises:
        InputError: tokenizers is not installed.
    """
    try:
        from tokenizers import BertWordPieceTokenizer
    except ImportError:
        raise InputError(
            "the package tokenizers must be installed. Received: no such package"
        ) from None
    theirs = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    progress = sys.stderr.isatty()
    options = trainer_options(vocab_size)
    theirs.train(list(files), vocab_size=vocab_size, show_progress=progress, **options)
    output_dir.mkdir(parents=True, exist_ok=True)
    theirs.save_model(str(output_dir))  # vocab.txt
    tokenizer = FullTokenizer(output_dir / "vocab.txt", do_lower_case=False)
    save_tokenizer(tokenizer, output_dir)
    return tokenizer


def main(arguments):
    """Learns, and prints the size."""
    files = expand_globs(arguments.input_file, "input_file")
    tokenizer = learn(files, arguments.output_dir, arguments.vocab_size)
    options = trainer_options(arguments.vocab_size)
    print(json.dumps({"pieces": tokenizer.vocab_size, **options}))


if __name__ == "__main__":
    texts = flag(str, "text: paths or globs, comma-separated")
    launch(main, __doc__, {"input_file": texts, "output_dir": Path, "vocab_size": 32000})
