"""Writes a fine-tuned classifier as a SavedModel, for TensorFlow Serving and its like.

As google-research/albert run_classifier.py: the signature "serving_default" takes serialized
tf.Examples with input_ids, input_mask and segment_ids as "input", gives "probabilities" and
"predictions".

Legend: B examples, T pieces of each, C classes.
"""

import os
import shutil
import time

import tensorflow as tf
from keras import ops


def export_classifier(model, length, directory, threshold=None, describe=None):
    """Writes the model below `directory`, in a new folder named after the time, as Google does.

    Args:
        model: a `SequenceClassifier`.
        length: T, which all examples must have.
        directory: where the folder is made.
        threshold: a number that callers get back as the output "threshold"; None for none.
        describe: a function of a folder that writes what belongs to the model; what it writes is
            in the folder assets.extra.

    Returns:
        The new folder's path.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="input")])
    def serve(input):
        features = {name: tf.io.FixedLenFeature([length], tf.int64) for name in INPUTS}
        parsed = tf.io.parse_example(input, features)  # [B, T] each
        inputs = {name: tf.cast(value, tf.int32) for name, value in parsed.items()}
        outputs = meaning(model, model(inputs, training=False)["logits"])
        if threshold is not None:
            outputs["threshold"] = tf.constant(threshold, tf.float32)
        return outputs

    module = tf.Module()
    module.weights = [variable.value for variable in model.weights]
    number = int(time.time())
    while os.path.exists(os.path.join(directory, str(number))):
        number += 1
    # A server that waits for folders named by a number sees a whole one.
    unfinished = os.path.join(directory, f"temp-{number}.{os.getpid()}")
    finished = os.path.join(directory, str(number))
    try:
        tf.saved_model.save(module, unfinished, signatures={"serving_default": serve})
        if describe:
            extra = os.path.join(unfinished, "assets.extra")
            os.makedirs(extra)
            describe(extra)
        os.rename(unfinished, finished)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return finished


INPUTS = ("input_ids", "input_mask", "segment_ids")


def meaning(model, logits):
    """The outputs that logits [B, C] stand for.

    Returns:
        A dict: "probabilities" [B, C] with "predictions", the number of the likeliest class [B].
        Of several labels each is between 0 and 1 by itself, and the predictions are 0 and 1
        [B, C]. Of a regression both are the score, [B, 1] and [B].
    """
    logits = ops.cast(logits, "float32")
    if model.multi_label:
        return {
            "probabilities": ops.sigmoid(logits),
            "predictions": ops.cast(logits > 0, "int32"),
        }
    if model.classes == 1:
        return {"probabilities": logits, "predictions": logits[:, 0]}
    return {
        "probabilities": ops.softmax(logits),
        "predictions": ops.argmax(logits, axis=-1),
    }
