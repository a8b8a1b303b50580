"""Rounds weights to float16, where all of them fit."""

from collections.abc import Mapping

import numpy as np

from bert_common.errors import InputError


def as_float16(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rounds arrays to float16, which halves their file; refuses values that float16 lacks."""
    rounded = {}
    for name, array in arrays.items():
        with np.errstate(over="ignore"):
            rounded[name] = array.astype(np.float16)
        if not np.isfinite(rounded[name]).all():
            worst = array[~np.isfinite(rounded[name])][0]
            raise InputError(
                f"--precision=float16 must hold every weight, at most {np.finfo(np.float16).max:,} "
                f"(--precision=float32 does). Received: {worst:.6g} in {name}"
            )
    return rounded
