"""Makes the signatures of a model that computes the vector of every text.

Shapes: B texts, T tokens of a row, H hidden.
"""

from typing import TYPE_CHECKING

import tensorflow as tf

from finetuning.serving.served_model import ServedModel
from finetuning.serving.signatures import Signatures, ids_signature, inputs, longest_row
from finetuning.serving.text_rows import TextRows

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def signatures(loaded: "LoadedModel") -> Signatures:
    """Makes the `Signatures` of a `LoadedModel` whose task is "similarity"."""
    model, tokenizer, max_length = loaded.model, loaded.tokenizer, longest_row(loaded)
    assert tokenizer is not None  # the export requires a fine-tuned model's tokenizer
    served = ServedModel(model, model, tokenizer.pad_id or 0)
    texts = TextRows(tokenizer)

    @tf.function(input_signature=inputs(tf.string, 1, "text"), autograph=False)
    def single(text):
        return served.from_rows(texts.singles(text, max_length))

    functions = {"serving_default": single, "ids": ids_signature(served)}
    return Signatures(functions, served, texts)
