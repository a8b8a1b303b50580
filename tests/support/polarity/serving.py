"""The graph of a SavedModel: one output for each text."""

import tensorflow as tf

from finetuning.inputs import ROW_INPUTS
from finetuning.serving.served_model import ServedModel
from finetuning.serving.signatures import Signatures, ids_signature, inputs, longest_row
from finetuning.serving.text_rows import TextRows


def signatures(loaded):
    """The signatures of a loaded model."""

    def compute(batch):
        logits = loaded.model({name: batch[name] for name in ROW_INPUTS})["logits"]  # [B, C]
        return {"shares": tf.nn.softmax(logits)}

    served, texts = ServedModel(loaded.model, compute, 0), TextRows(loaded.tokenizer)

    @tf.function(input_signature=inputs(tf.string, 1, "text"), autograph=False)
    def shares(text):
        return served.from_rows(texts.singles(text, longest_row(loaded)))

    functions = {"serving_default": shares, "ids": ids_signature(served)}
    return Signatures(functions, served, texts)
