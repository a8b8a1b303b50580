"""Imports TensorFlow without the messages that it prints while loading."""

import os

from bert_common.startup import exit_on_interrupt, open_missing_descriptors


def import_tensorflow():
    """Imports TensorFlow and lists its devices, with standard error discarded meanwhile.

    TensorFlow prints its first lines from C++ before any of its log settings apply.

    Returns:
        The module `tensorflow`.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever ~/.keras/keras.json says
    open_missing_descriptors()
    with exit_on_interrupt():
        standard_error = os.dup(2)
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(null, 2)
            import keras  # noqa: F401 (every caller needs it; here Ctrl-C cannot break the import)
            import tensorflow as tf

            tf.config.list_physical_devices()
            return tf
        finally:
            os.dup2(standard_error, 2)
            os.close(null)
            os.close(standard_error)
