"""Imports TensorFlow without the messages that it prints while loading."""

import os
import pickle
import types
from collections.abc import Callable
from typing import Any

from bert_common import startup
from bert_common.errors import InputError

# If a program enables auto-clustering, this extends it to CPUs, except for matrix products.
CLUSTERING_FLAGS = "--tf_xla_cpu_global_jit --tf_xla_ops_to_cluster=FUSIBLE"


def import_tensorflow(set_flags: Callable[[], Any] | None = None) -> types.ModuleType:
    """Imports TensorFlow and lists its devices, with standard error discarded.

    TensorFlow prints its first lines from C++ before any of its log settings apply. `set_flags`
    is called after the import to set more XLA flags in the environment; TensorFlow reads them when
    it first lists its devices.

    Raises:
        InputError: Keras was imported before, with another backend.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # overrides ~/.keras/keras.json
    with (
        startup.exit_on_interrupt(),
        open(os.devnull, "wb") as null,
        startup.redirect_standard_error(null),
    ):
        import keras  # every caller needs it; here Ctrl-C cannot break the import

        if keras.backend.backend() != "tensorflow":
            raise InputError(
                "Keras must use TensorFlow: set KERAS_BACKEND=tensorflow before Keras is imported. "
                f"Received: Keras on {keras.backend.backend()}"
            )
        import tensorflow as tf

        add_flags("TF_XLA_FLAGS", CLUSTERING_FLAGS)
        if set_flags:
            set_flags()
        tf.config.list_physical_devices()
        return tf


def unpickle(content: bytes) -> Any:
    """Imports TensorFlow, then unpickles classes and an object, and makes one of the last class."""
    import_tensorflow()
    *_, kind, argument = pickle.loads(content)
    return kind(argument)


def add_flags(variable: str, flags: str) -> None:
    """Prepends flags to an environment variable, so that the user's own, which come later, win."""
    os.environ[variable] = f"{flags} {os.environ.get(variable, '')}".strip()
