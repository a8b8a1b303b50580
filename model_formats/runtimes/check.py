"""Compares the outputs of an exported file with the model's.

Shapes: B rows, T tokens of a row, C options.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from finetuning.inputs import Batch
from model_formats.loaded_model import LoadedModel
from model_formats.runtimes.ids_graph import input_axes, input_names

# The largest difference, relative to a tensor's largest value or to 1. A float32 file sums in a
# different order, float16 has 11 significant bits, and int8 has 7 in each of two factors.
TOLERANCES = {"float32": 1e-4, "float16": 1e-2, "int8": 0.5}

# Values above this are masked. ALBERT's head for SQuAD 2.0 subtracts 1e30 from masked values.
MASKED = 1e20

# The rows and the tokens of the longest row of two batches, as the file must leave both sizes open.
BATCHES = ((1, 64), (3, 24))

OPTIONS = 4

# A function that runs a file: inputs by name -> outputs by name.
Run = Callable[[Batch], Mapping[str, np.ndarray]]


def check_file(loaded: LoadedModel, graph: Any, run: Run, precision: str) -> None:
    """Raises an `InputError` if a file's outputs differ from the graph's on random ids.

    `run` runs the exported file, and `precision` is a key of `TOLERANCES`.
    """
    for seed, (batch, longest) in enumerate(BATCHES):
        # Rows must have at least as many tokens as the beams keep positions.
        widest = (getattr(loaded.model, name, 1) for name in ("start_n_top", "end_n_top"))
        length = min(max(longest, *widest), loaded.config.max_position_embeddings)
        inputs = sample_inputs(loaded, batch, length, graph.input_signature[0].dtype, seed)
        wanted = graph(*(tf.constant(inputs[name]) for name in input_names(loaded)))
        differences = largest_differences(run(inputs), wanted)
        name, difference = max(differences.items(), key=lambda item: item[1])
        if not difference <= TOLERANCES[precision]:
            raise InputError(
                f"a file of --precision={precision} must compute what the model computes, up to "
                f"{TOLERANCES[precision]}: another precision may. Received: {name}, which differs "
                f"by {difference:.2g}"
            )


def sample_inputs(
    loaded: LoadedModel, batch: int, length: int, dtype: tf.DType, seed: int
) -> Batch:
    """Returns random rows by name, [B, T] or, for multiple choice, [B, C, T]; some are padded."""
    rng = np.random.default_rng(seed)
    shape = (batch, length) if len(input_axes(loaded)) == 2 else (batch, OPTIONS, length)
    lengths = rng.integers(length // 2, length + 1, shape[:-1])  # [B]
    lengths.flat[0] = length
    mask = np.arange(length) < lengths[..., None]  # [B, T]
    second = np.arange(length) >= lengths[..., None] // 2  # [B, T]
    inputs = {
        "input_ids": rng.integers(0, loaded.config.vocab_size, shape) * mask,
        "input_mask": mask,
        "segment_ids": second * mask * (loaded.config.type_vocab_size > 1),
        "p_mask": ~mask,
    }
    names = input_names(loaded)
    return {name: inputs[name].astype(dtype.as_numpy_dtype) for name in names}


def largest_differences(
    found: Mapping[str, np.ndarray], wanted: Mapping[str, Any]
) -> dict[str, float]:
    """Returns each output's largest difference, relative to its largest value or to 1.

    Masked values, which are huge, must be masked in both, and are otherwise ignored. The indices
    that a search returns are not compared, as two equal values can come in any order.
    """
    differences = {}
    for name, value in wanted.items():
        value = np.asarray(value)
        if found[name].shape != value.shape:
            differences[name] = np.inf
        elif value.dtype.kind == "f":
            masked = np.abs(value) > MASKED
            if not np.array_equal(masked, np.abs(found[name]) > MASKED):
                differences[name] = np.inf
                continue
            ours, theirs = value[~masked], np.asarray(found[name])[~masked]
            scale = np.abs(ours).max(initial=1.0)
            difference = np.abs(theirs - ours).max(initial=0.0) / scale
            differences[name] = float(np.nan_to_num(difference, nan=np.inf))
    return differences
