"""The layers' own functions, beside the C library's."""

import math

import keras
import ml_dtypes
import numpy as np
import pytest
from keras import ops

from bert_tf.layers import gelu_erf

# The distance between 1 and the next number, a few times.
TOLERANCES = {"float64": 1e-15, "float32": 1e-6, "bfloat16": 2.0**-7, "float16": 2.0**-10}


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_the_exact_gelu(dtype):
    dtype_of_numpy = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    x = np.linspace(-6, 6, 241).astype(dtype_of_numpy)
    found = gelu_erf(ops.convert_to_tensor(x))
    assert keras.backend.standardize_dtype(found.dtype) == dtype
    wanted = np.array([v * math.erfc(-v / math.sqrt(2)) / 2 for v in x.astype(np.float64)])
    error = np.abs(ops.convert_to_numpy(ops.cast(found, "float64")) - wanted)
    # 16 bits keep the tail's digits too, as the sum with erf is formed in 32.
    scale = 1.0 if dtype in ("float32", "float64") else np.maximum(np.abs(wanted), 1e-2)
    assert (error / scale).max() < TOLERANCES[dtype]
