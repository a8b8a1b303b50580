"""Imports TensorFlow without the messages that it prints while loading."""

import os

from bert_common import startup


def import_tensorflow():
    """Imports TensorFlow and lists its devices, and discards standard error meanwhile.

    TensorFlow prints its first lines from C++ before any of its log settings apply.

    Returns:
        The module `tensorflow`.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # whatever ~/.keras/keras.json says
    startup.open_missing_descriptors()
    with (
        startup.exit_on_interrupt(),
        open(os.devnull, "wb") as null,
        startup.redirect_standard_error(null),
    ):
        import keras  # noqa: F401 (every caller needs it; here Ctrl-C cannot break the import)
        import tensorflow as tf

        tf.config.list_physical_devices()
        return tf
