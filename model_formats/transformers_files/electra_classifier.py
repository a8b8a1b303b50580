"""Expresses a linear sequence head exactly as the two-layer head of transformers' ELECTRA.

transformers computes out_proj(gelu(dense(x))). Its gelu uses the error function, for which
gelu(y) - gelu(-y) = y. With the weights W and -W in `dense`, and 1 and -1 in `out_proj`, the
result is exactly W x.

Source: ElectraClassificationHead in modeling_electra.py of transformers, version 5.

Shapes: C classes, H hidden.
"""

from collections.abc import Mapping

import numpy as np

from bert_common.errors import InputError

DENSE, OUT = "classifier.dense.", "classifier.out_proj."
NAMES = (DENSE + "weight", DENSE + "bias", OUT + "weight", OUT + "bias")


def as_two_layers(weights: np.ndarray, bias: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the arrays of transformers' head, by its names, for weights [C, H] and bias [C].

    Raises an `InputError` if there are more classes than half of H.
    """
    classes, hidden = weights.shape
    if 2 * classes > hidden:
        raise InputError(
            "transformers' head of an ELECTRA must have two hidden units a class. Received: "
            f"{classes} classes, hidden_size={hidden}"
        )
    dense, out = np.zeros((hidden, hidden), weights.dtype), np.zeros_like(weights)  # [H, H], [C, H]
    dense[:classes], dense[classes : 2 * classes] = weights, -weights
    out[:, :classes], out[:, classes : 2 * classes] = np.eye(classes), -np.eye(classes)
    return dict(zip(NAMES, (dense, np.zeros(hidden, weights.dtype), out, bias), strict=True))


def is_linear(arrays: Mapping[str, np.ndarray]) -> bool:
    """Returns True if the arrays, by transformers' names, have the form of `as_two_layers`."""
    dense, between, out, _ = (arrays[name] for name in NAMES)
    classes = len(out)
    if out.ndim != 2 or 2 * classes > out.shape[1] or dense.shape != (out.shape[1],) * 2:
        return False
    signs = np.zeros_like(out)
    signs[:, :classes], signs[:, classes : 2 * classes] = np.eye(classes), -np.eye(classes)
    halves = np.array_equal(dense[:classes], -dense[classes : 2 * classes])
    return halves and np.array_equal(out, signs) and not between.any()
