"""Imports TensorFlow without the lines that it prints about itself."""

import os

from bert_common.startup import ending_at_once, open_missing_descriptors


def import_tensorflow():
    """Imports TensorFlow, finds the devices, with descriptor 2 going nowhere meanwhile; returns it.

    TensorFlow prints its first lines from C++ before any of its log settings apply.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever ~/.keras/keras.json says
    open_missing_descriptors()
    with ending_at_once():
        kept = os.dup(2)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, 2)
            import keras  # noqa: F401 (as all that import TensorFlow need it, while Ctrl-C is safe)
            import tensorflow as tf

            tf.config.list_physical_devices()
            return tf
        finally:
            os.dup2(kept, 2)
            os.close(nowhere)
            os.close(kept)
