"""Imports TensorFlow without the lines that it prints about itself."""

import contextlib
import os


@contextlib.contextmanager
def quiet_import():
    """Sends descriptor 2 to nowhere inside the block; meant for `import tensorflow` alone.

    TensorFlow prints its first lines from C++ before any of its log settings apply.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever ~/.keras/keras.json says
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)
