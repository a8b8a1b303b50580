"""Makes the tokenized text from which lessons draw their rows.

    python -m benchmarks.sentence_order.lesson_text --input_file=work/train.txt \\
        --held_out=work/heldout.txt --tokenizer_dir=reference_model \\
        --output_file=work/text.npz.xz

`python -m benchmarks.gpu_step train --text` draws its rows from the result.
"""

import os

from benchmarks.common import flag, launch
from benchmarks.reference.text import documents
from benchmarks.sentence_order.text_file import SPECIAL, WORD_START, TextFile, write_text
from bert_common.folders import make_writable
from bert_common.progress import with_progress
from create_pretraining_data.instances.text import tokenize_documents
from tokenization import load_tokenizer


def tokenize(path, tokenizer):
    """Tokenizes a text file; returns a `TokenizedText`."""
    found = list(documents([path]))
    return tokenize_documents(with_progress(found, "tokenizing", "documents"), tokenizer)


def main(arguments):
    """Writes the file."""
    folder = os.path.dirname(os.path.abspath(arguments.output_file))
    make_writable(folder, "--output_file must be in a directory that can be written")
    tokenizer = load_tokenizer(arguments.tokenizer_dir)
    assert tokenizer.vocab_size <= WORD_START
    train, held_out = (
        tokenize(path, tokenizer) for path in (arguments.input_file, arguments.held_out)
    )
    special = {name: getattr(tokenizer, name) for name in SPECIAL}
    write_text(arguments.output_file, TextFile(train, held_out, special))
    size = os.path.getsize(arguments.output_file) / 1e6
    print(f"{len(train.ids):,} tokens, {size:.1f} MB: {arguments.output_file}")


if __name__ == "__main__":
    flags = {
        "input_file": flag(str, "a text to train on"),
        "held_out": flag(str, "a text to measure on"),
        "tokenizer_dir": str,
        "output_file": str,
    }
    launch(main, __doc__, flags)
