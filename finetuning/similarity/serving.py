"""Signatures of a model of vectors: the vector of every text.

Shapes: B texts, T pieces of a row, H hidden.
"""

from typing import Any

import tensorflow as tf

from finetuning.inputs import ROW_INPUTS
from finetuning.serving.served_model import ServedModel
from finetuning.serving.signatures import Signatures, ids_signature, inputs, longest_row
from finetuning.serving.text_rows import TextRows


def signatures(loaded: Any) -> Signatures:
    """The `Signatures` of a `LoadedModel` whose task is "similarity"."""
    model, max_length = loaded.model, longest_row(loaded)

    def compute(batch):
        return model({name: batch[name] for name in ROW_INPUTS})

    served = ServedModel(model, compute, loaded.tokenizer.pad_id or 0)
    texts = TextRows(loaded.tokenizer)

    @tf.function(input_signature=inputs(tf.string, 1, "text"), autograph=False)
    def single(text):
        return served.from_rows(texts.singles(text, max_length))

    functions = {"serving_default": single, "ids": ids_signature(served)}
    return Signatures(functions, served, texts)
