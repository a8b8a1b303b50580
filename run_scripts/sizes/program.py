"""The program sizes: prints parameters, operations and memory of published sizes and of any other.

    python -m run_scripts.sizes
    python -m run_scripts.sizes --config_file=my/albert_config.json --lengths=64,256

It imports no TensorFlow.
"""

import dataclasses
import os
import re

from albert_tf.config import PRESETS as ALBERT_PRESETS
from albert_tf.config import AlbertConfig
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_tf.config import PRESETS as BERT_PRESETS
from bert_tf.config import BertConfig, is_of_transformers
from model_formats.config_file import CONFIGS
from model_formats.transformers_files.config import from_huggingface
from run_scripts.flags.declaration import flag
from run_scripts.flags.limits import LARGEST_BATCH, LONGEST_SEQUENCE
from run_scripts.flags.parser import run_program
from run_scripts.sizes.tables import print_tables

# The vocabularies of Google's English models, uncased and version 2, whose sizes the papers print.
BERT_VOCABULARY, ALBERT_VOCABULARY = 30522, 30000

# More would not fit on a terminal.
MOST_LENGTHS = 4


@dataclasses.dataclass(frozen=True)
class SizesFlags:
    """Prints the parameters, the operations and the memory of models.

    Without --config_file these are all published sizes of BERT and ALBERT, with the vocabularies of
    the English models."""

    config_file: str = flag(
        None,
        "Configurations of other models, by commas: bert_config.json, albert_config.json, "
        "or config.json of transformers.",
        is_input=True,
    )
    lengths: str = flag("128,512", "The lengths of rows to print, separated by commas.")
    batch_size: int = flag(
        32, "How many rows are trained or used at once.", least=1, most=LARGEST_BATCH
    )


def main(argv=None):
    """The program; returns the exit status."""
    return run_program(show_sizes, SizesFlags, argv)


def show_sizes(flags):
    """Prints the tables."""
    lengths = read_lengths(flags.lengths)
    models = published_sizes()
    if flags.config_file:
        models = {path: read_config_file(path) for path in flags.config_file.split(",")}
    print_tables(models, lengths, flags.batch_size)


def published_sizes():
    """Name -> configuration of every size that the papers and the repositories publish."""
    bert = {f"BERT-{name}": BertConfig.from_preset(name, BERT_VOCABULARY) for name in BERT_PRESETS}
    albert = {
        f"ALBERT-{name}": AlbertConfig.from_preset(name, ALBERT_VOCABULARY)
        for name in ALBERT_PRESETS
    }
    return bert | albert


def read_config_file(path):
    """The `BertConfig` or `AlbertConfig` of a file; which of them, its keys say."""
    values = read_json(read_bytes(path), path)
    if isinstance(values, dict) and is_of_transformers(values):
        return from_huggingface(values, path).config
    # Google's configurations of BERT have no such key.
    albert = isinstance(values, dict) and "embedding_size" in values
    albert |= os.path.basename(path).startswith("albert")
    return CONFIGS["albert" if albert else "bert"].from_json_file(path)


def read_lengths(text):
    """The numbers of --lengths."""
    parts = text.split(",")
    lengths = [int(part) for part in parts if re.fullmatch(r"\d{1,9}", part)]
    allowed = all(1 < length <= LONGEST_SEQUENCE for length in lengths)
    if len(lengths) < len(parts) or len(parts) > MOST_LENGTHS or not allowed:
        raise InputError(
            f"--lengths must be one to {MOST_LENGTHS} numbers from 2 to {LONGEST_SEQUENCE}, "
            f"separated by commas. Received: {text}"
        )
    return lengths
