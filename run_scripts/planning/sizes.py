"""The tables of models: what any size needs, a table for each kind of cost."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from albert_tf.config import PRESETS as ALBERT_PRESETS
from albert_tf.config import AlbertConfig
from bert_tf.config import PRESETS as BERT_PRESETS
from bert_tf.config import BertConfig, EncoderConfig
from bert_tf.costs.flops import block_flops, forward_flops, training_flops
from bert_tf.memory_estimate import (
    GIB,
    KEPT_BYTES,
    count_parts,
    count_weights,
    estimate_bytes,
    inference_bytes,
)
from bert_tf.names import is_blockwise
from run_scripts.planning.table import number, print_columns

# The vocabularies of Google's English models, uncased and version 2, whose sizes the papers print.
BERT_VOCABULARY, ALBERT_VOCABULARY = 30522, 30000

# The share of the pieces that pre-training masks, in both papers.
MASKED_SHARE = 0.15

PRECISIONS = [name for name in KEPT_BYTES if name != "float16"]  # which needs as much as bfloat16

# (configuration, rows, length, precision) -> bytes.
Memory = Callable[[EncoderConfig, int, int, str], float]

# Where a model has fewer positions than a length.
NONE = "-"


def published_sizes() -> dict[str, EncoderConfig]:
    """Name -> configuration of every size that the papers and the repositories publish."""
    bert: dict[str, EncoderConfig] = {
        f"BERT-{name}": BertConfig.from_preset(name, BERT_VOCABULARY) for name in BERT_PRESETS
    }
    albert: dict[str, EncoderConfig] = {
        f"ALBERT-{name}": AlbertConfig.from_preset(name, ALBERT_VOCABULARY)
        for name in ALBERT_PRESETS
    }
    return bert | albert


def print_tables(models: Mapping[str, EncoderConfig], lengths: Sequence[int], batch: int) -> None:
    """Prints all tables.

    Args:
        models: a dict from each model's name to its configuration.
        lengths: a list of how many pieces rows have.
        batch: how many rows are computed at once.
    """
    print("Parameters in millions: of the encoder by part, and of the heads of pre-training\n")
    print_columns(parameter_rows(models))
    print(f"\nOperations per piece in millions, matrix products alone, {masked(lengths)}\n")
    print_columns(operation_rows(models, lengths))
    for title, memory in MEMORIES.items():
        print(f"\nMemory in GiB {title}, {batch} rows of a length at once, by estimate\n")
        print_columns(memory_rows(models, lengths, batch, memory))


def masked(lengths: Iterable[int]) -> str:
    """Names what is masked at each length, for a title."""
    each = ", ".join(f"{predictions_of(length)} of {length}" for length in lengths)
    return f"training with masks at {each}"


def predictions_of(length: int) -> int:
    return math.ceil(MASKED_SHARE * length)


def parameter_rows(models: Mapping[str, EncoderConfig]) -> list[list[str]]:
    """The header, and a row for each model."""
    names = ("embeddings", "of words", "projection", "blocks", "pooler")
    rows = [["", *names, "encoder", "heads", "blocks x runs"]]
    for name, config in models.items():
        parts = count_parts(config)
        encoder = count_weights(config) - parts["heads"]
        runs = config.num_block_calls // config.num_blocks
        embeddings = parts["words"] + parts["positions"]
        others = (parts[part] for part in ("words", "projection", "blocks", "pooler"))
        numbers = [embeddings, *others, encoder, parts["heads"]]
        rows.append([name, *map(millions, numbers), f"{config.num_blocks} x {runs}"])
    return rows


def operation_rows(models: Mapping[str, EncoderConfig], lengths: Sequence[int]) -> list[list[str]]:
    """The header, and a row for each model: to use and to train, at each length."""
    rows = [["", *(f"{verb} {length}" for length in lengths for verb in ("use", "train"))]]
    for name, config in models.items():
        cells = []
        for length in lengths:
            if length > config.max_position_embeddings:
                cells += [NONE, NONE]
                continue
            used = encoding_flops(config, length)
            trained = training_flops(config, length, predictions_of(length))
            cells += [number(flops / length / 1e6) for flops in (used, trained)]
        rows.append([name, *cells])
    return rows


def encoding_flops(config: EncoderConfig, length: int) -> int:
    """The operations that give a row's vectors at all pieces: the last block runs everywhere."""
    only_first, everywhere = (block_flops(config, length, more) for more in (0, length - 1))
    return forward_flops(config, length, 0) - only_first + everywhere


def memory_rows(
    models: Mapping[str, EncoderConfig], lengths: Sequence[int], batch: int, memory: Memory
) -> list[list[str]]:
    """The header, and a row for each model: each length in each precision."""
    rows = [["", *(f"{length} {name}" for length in lengths for name in PRECISIONS)]]
    for name, config in models.items():
        sizes = [
            gibibytes(memory(config, batch, length, precision))
            if length <= config.max_position_embeddings
            else NONE
            for length in lengths
            for precision in PRECISIONS
        ]
        rows.append([name, *sizes])
    return rows


def to_train(recompute: str) -> Memory:
    """A function of (configuration, rows, length, precision) to the bytes that training needs."""

    def memory(config, batch, length, precision):
        sizes = (batch, length, predictions_of(length), precision, recompute)
        return estimate_bytes(config, *sizes, blockwise=is_blockwise("auto", length))

    return memory


# The end of each table's title -> its function.
MEMORIES = {
    "to train": to_train("none"),
    "to train with --recompute=block": to_train("block"),
    "to use": inference_bytes,
}


def millions(count: float) -> str:
    """Writes a number in millions, such as "23.4", a small one with more digits."""
    return f"{count / 1e6:.{1 if count >= 1e5 or not count else 2}f}"


def gibibytes(size: float) -> str:
    return f"{size / GIB:.1f}"
