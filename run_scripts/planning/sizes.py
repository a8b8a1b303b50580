"""Prints tables of what models of any size need, one for each kind of cost."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from bert_tf.config import EncoderConfig
from bert_tf.costs.flops import block_flops, forward_flops, training_flops
from bert_tf.memory_estimate import GIB, KEPT_BYTES, count_parts, estimate_bytes, inference_bytes
from bert_tf.names import is_blockwise
from electra_tf import costs as costs_of_both
from electra_tf.config import ElectraConfig
from model_formats.encoders import ALBERT, BERT
from run_scripts.planning.table import number, print_columns

# With the vocabulary sizes of Google's English models (BERT uncased, ALBERT version 2), for which
# the papers print the models' sizes.
PUBLISHED = ((BERT, 30522), (ALBERT, 30000))

# The share of the tokens that pre-training masks, in both papers.
MASKED_SHARE = 0.15

PRECISIONS = [name for name in KEPT_BYTES if name != "float16"]  # float16 needs as much as bfloat16

# Printed if a model has fewer positions than a length.
NONE = "-"


def published_sizes() -> dict[str, EncoderConfig]:
    """Returns name -> configuration of every size that the papers and repositories publish."""
    return {
        f"{encoder.title}-{name}": encoder.config.from_preset(name, vocab_size)
        for encoder, vocab_size in PUBLISHED
        for name in encoder.config.presets
    }


def print_tables(
    models: Mapping[str, EncoderConfig], lengths: Sequence[int], batch: int, token_dropping: float
) -> None:
    """Prints all tables; `token_dropping` is the share of tokens that skip the middle layers."""
    print("Parameters in millions: of the encoder by part, and of the heads of pre-training\n")
    print_columns(parameter_rows(models))
    dropped = f", {token_dropping:.0%} dropped" if token_dropping else ""
    masks = ", ".join(f"{predictions_of(length)} of {length}" for length in lengths)
    print(
        "\nOperations per token in millions, matrix products alone, training with masks at "
        f"{masks}{dropped}\n"
    )
    print_columns(operation_rows(models, lengths, token_dropping))
    for title, recompute in MEMORIES.items():
        print(f"\nMemory in GiB {title}, {batch} rows of a length at once, by estimate\n")
        print_columns(memory_rows(models, lengths, batch, recompute, token_dropping))
    print(
        "\nA teacher (run_pretraining --teacher_dir) is not counted: it adds about the operations\n"
        "and the memory that the tables give for using the teacher's model."
    )


def predictions_of(length: int) -> int:
    return math.ceil(MASKED_SHARE * length)


def parameter_rows(models: Mapping[str, EncoderConfig]) -> list[list[str]]:
    """Returns the header, and a row of parameter counts for each model."""
    names = ("embeddings", "of words", "projection", "blocks", "pooler")
    rows = [["", *names, "encoder", "heads", "blocks x runs"]]
    for name, config, both in with_generators(models):
        parts = costs_of_both.count_both(both) if both else count_parts(config)
        encoder = sum(parts.values()) - parts["heads"]
        runs = config.num_block_calls // config.num_blocks
        embeddings = parts["words"] + parts["positions"]
        others = (parts[part] for part in ("words", "projection", "blocks", "pooler"))
        numbers = [embeddings, *others, encoder, parts["heads"]]
        blocks = config.num_blocks * (2 if both else 1)
        rows.append([name, *map(millions, numbers), f"{blocks} x {runs}"])
    return rows


def with_generators(
    models: Mapping[str, EncoderConfig],
) -> Iterable[tuple[str, EncoderConfig, ElectraConfig | None]]:
    """Yields (name, configuration, None); each ELECTRA again, as it trains with its generator."""
    for name, config in models.items():
        yield name, config, None
        if isinstance(config, ElectraConfig):
            yield f"{name} with generator", config, config


def operation_rows(
    models: Mapping[str, EncoderConfig], lengths: Sequence[int], token_dropping: float
) -> list[list[str]]:
    """Returns the header, and a row for each model: to use and to train, at each length."""
    rows = [["", *(f"{verb} {length}" for length in lengths for verb in ("use", "train"))]]
    for name, config, both in with_generators(models):
        cells = []
        for length in lengths:
            if length > config.max_position_embeddings:
                cells += [NONE, NONE]
                continue
            used = encoding_flops(config, length)
            predictions = predictions_of(length)
            if both:
                trained = costs_of_both.training_flops(both, length, predictions)
            else:
                trained = training_flops(config, length, predictions, 1, token_dropping)
            cells += [number(flops / length / 1e6) for flops in (used, trained)]
        rows.append([name, *cells])
    return rows


def encoding_flops(config: EncoderConfig, length: int) -> int:
    """Returns the operations for the vectors of all tokens of a row, in the last block too."""
    only_first, everywhere = (block_flops(config, length, more) for more in (0, length - 1))
    return forward_flops(config, length, 0) - only_first + everywhere


# The end of a table's title -> --recompute of a training, or None if a finished model is used,
# without its generator and with all tokens.
MEMORIES = {"to train": "none", "to train with --recompute=block": "block", "to use": None}


def memory_rows(
    models: Mapping[str, EncoderConfig],
    lengths: Sequence[int],
    batch: int,
    recompute: str | None,
    token_dropping: float,
) -> list[list[str]]:
    """Returns the header, and a row for each model: each length in each precision."""
    columns = [*itertools.product(lengths, PRECISIONS)]
    rows = [["", *(f"{length} {precision}" for length, precision in columns)]]
    for name, config, both in with_generators(models):
        cells = []
        for length, precision in columns:
            if length > config.max_position_embeddings:
                cells.append(NONE)
                continue
            sizes = (batch, length, predictions_of(length), precision)
            block = is_blockwise("auto", length)
            if recompute is None:
                size = inference_bytes(config, batch, length, precision, block)
            elif both:
                size = costs_of_both.estimate_bytes(both, *sizes, recompute, blockwise=block)
            else:
                size = estimate_bytes(
                    config, *sizes, recompute, blockwise=block, token_dropping=token_dropping
                )
            cells.append(f"{size / GIB:.1f}")
        rows.append([name, *cells])
    return rows


def millions(count: float) -> str:
    """Formats a number in millions, such as "23.4"; a small number gets more digits."""
    return f"{count / 1e6:.{1 if count >= 1e5 or not count else 2}f}"
