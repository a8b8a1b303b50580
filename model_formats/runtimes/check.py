"""Compares what an exported file computes with what the model computes.

Shapes: B rows, T pieces of a row.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert_common.errors import InputError
from finetuning.inputs import Batch
from model_formats.loaded_model import LoadedModel
from model_formats.runtimes.ids_graph import input_axes, input_names

# The largest difference, of a tensor's largest value or of 1: the file of float32 sums up in
# another order, a float16 has 11 significant bits, and an int8 7 of them in each of two factors.
TOLERANCES = {"float32": 1e-4, "float16": 1e-2, "int8": 0.5}

# Larger values are masked: ALBERT's head for SQuAD 2.0 takes 1e30 from them.
MASKED = 1e20

# B and the most pieces of a row, of two batches: both sizes must be open in the file.
BATCHES = ((1, 64), (3, 24))

OPTIONS = 4

# What runs a file: inputs by name -> outputs by name.
Run = Callable[[Batch], Mapping[str, np.ndarray]]


def check_file(loaded: LoadedModel, graph: Any, run: Run, precision: str) -> None:
    """Refuses an exported file that computes something else than the model, on random ids.

    `run` runs the file of the graph: inputs -> outputs, arrays by name; the precision is a key of
    `TOLERANCES`.
    """
    for seed, (batch, longest) in enumerate(BATCHES):
        # A beam keeps as many places, so a row must have them.
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
    """Random rows, a dict of [B, T], or [B, C, T] for multiple choice; some have padding."""
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
    """Name of each output -> its largest difference, as a share of its largest value or of 1.

    Masked values, which are huge, must be masked in both, and do not count as the largest. Indices,
    which a search returns, are not compared: of two equal values either may come first.
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
