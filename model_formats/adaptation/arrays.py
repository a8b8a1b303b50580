"""Applies a new vocabulary or more positions to the arrays of a checkpoint.

Shapes: V rows of the old vocabulary, W of the new one, P and Q positions, E embedding.
"""

from collections.abc import Mapping

import numpy as np

from bert_common.errors import InputError
from bert_tf.checkpoint import CheckpointArrays, weight_names
from bert_tf.config import EncoderConfig
from model_formats.adaptation.new_rows import NewRow, new_embeddings, new_output_bias
from model_formats.adaptation.positions import METHODS
from model_formats.weights import check_names

# The changed weights, by our names, which are the keys of a model's table of Google's names. Not
# every encoder has position embeddings, and only a masked-word head has an output bias.
WORDS, POSITIONS = "embeddings/word_embeddings", "embeddings/position_embeddings"
OUTPUT_BIAS = "masked_lm/output_bias"


def adapted_arrays(
    arrays: CheckpointArrays,
    config: EncoderConfig,
    names: Mapping[str, str],
    *,
    rows: list[NewRow] | None = None,
    typical: list[int] | None = None,
    positions: int | None = None,
    trained: int | None = None,
    method: str = "repeat",
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Reads a checkpoint that fits the configuration, and changes its vocabulary and positions.

    Args:
        names: our names of the encoder's and the heads' weights -> Google's.
        rows: the new vocabulary's rows; None keeps the vocabulary.
        typical: the ids of the old rows that random rows resemble.
        positions: the new number of positions; None keeps them.
        trained: the number of old positions that were trained; None for all.
        method: a key of `METHODS`.
        seed: determines the random rows.

    Returns:
        Arrays for `bert_tf.checkpoint.write_arrays`: all arrays of the checkpoint except the
        training's moments and counters. Unchanged arrays are bit-equal.
    """
    if positions is not None and POSITIONS not in names:
        raise InputError(
            "the encoder must have position embeddings to change their number. Received: none"
        )
    _check_shapes(arrays, config, names)
    adapted = {name: arrays.read(name) for name in weight_names(arrays)}
    if rows is not None:
        assert typical is not None  # always set together with `rows`
        table, bias = names[WORDS], names.get(OUTPUT_BIAS)
        rng = np.random.default_rng(seed)
        adapted[table] = new_embeddings(adapted[table], rows, typical, rng)  # [V, E] -> [W, E]
        if bias in adapted:
            adapted[bias] = new_output_bias(adapted[bias], rows, typical)  # [V] -> [W]
    if positions is not None:
        name = names[POSITIONS]
        adapted[name] = METHODS[method](adapted[name][:trained], positions)  # [P, E] -> [Q, E]
    return adapted


def _check_shapes(arrays, config, names):
    """Raises an `InputError` if the tables or names do not fit the configuration."""
    check_names(arrays)
    rows, width = config.vocab_size, config.embedding_size
    tables = {WORDS: [rows, width], POSITIONS: [config.max_position_embeddings, width]}
    for ours, shape in {**tables, OUTPUT_BIAS: [rows]}.items():
        name = names.get(ours)
        found = arrays.shapes.get(name, shape if ours == OUTPUT_BIAS else None)
        if name and (found is None or list(found) != shape):
            raise InputError(
                f"the checkpoint {arrays.source} must fit the configuration: {name} "
                f"{shape}. Received: {'none' if found is None else list(found)}"
            )
