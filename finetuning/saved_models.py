"""Exports a fine-tuned classifier as a SavedModel, for TensorFlow Serving and similar programs.

As in google-research/albert run_classifier.py, the signature "serving_default" takes serialized
tf.Examples with input_ids, input_mask and segment_ids as "input", and returns "probabilities" and
"predictions".

Shapes: B examples, T tokens of each, C classes.
"""

import os
import shutil
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from keras import ops

from finetuning.inputs import ROW_INPUTS

if TYPE_CHECKING:  # it is in a higher layer
    from finetuning.classification.head import SequenceClassifier


def export_classifier(
    model: "SequenceClassifier",
    length: int,
    directory: str,
    threshold: float | None,
    write_model_files: Callable[[str], None],
) -> str:
    """Writes the model into a new folder of `directory` named after the time, as Google does.

    Returns the new folder's path.

    Args:
        length: T, the same for all examples.
        threshold: a number that is returned to callers as the output "threshold"; None for none.
        write_model_files: a function that writes files into a folder, here assets.extra.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="input")])
    def serve(input):
        features = {name: tf.io.FixedLenFeature([length], tf.int64) for name in ROW_INPUTS}
        parsed = tf.io.parse_example(input, features)  # [B, T] each
        inputs = {name: tf.cast(value, tf.int32) for name, value in parsed.items()}
        outputs = interpret_logits(model, model(inputs, training=False)["logits"])
        if threshold is not None:
            outputs["threshold"] = tf.constant(threshold, tf.float32)
        return outputs

    module = tf.Module()
    module.weights = [variable.value for variable in model.weights]
    number = int(time.time())
    while os.path.exists(os.path.join(directory, str(number))):
        number += 1
    # A server that watches for folders named by a number must not see an incomplete one.
    unfinished = os.path.join(directory, f"temp-{number}.{os.getpid()}")
    finished = os.path.join(directory, str(number))
    try:
        tf.saved_model.save(module, unfinished, signatures={"serving_default": serve})
        extra = os.path.join(unfinished, "assets.extra")
        os.makedirs(extra)
        write_model_files(extra)
        os.rename(unfinished, finished)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return finished


def interpret_logits(model: "SequenceClassifier", logits: Any) -> dict[str, Any]:
    """Turns logits [B, C] into the outputs of a served model.

    They are "probabilities" [B, C] and "predictions", the index of the most probable class [B]. For
    a multi-label model the probabilities are independent, and the predictions are 0 or 1, [B, C].
    For regression both are the score, [B, 1] and [B].
    """
    logits = ops.cast(logits, "float32")
    if model.multi_label:
        predictions = ops.cast(logits > 0, "int32")
        return {"probabilities": ops.sigmoid(logits), "predictions": predictions}
    if model.classes == 1:
        return {"probabilities": logits, "predictions": logits[:, 0]}
    return {"probabilities": ops.softmax(logits), "predictions": ops.argmax(logits, axis=-1)}
