"""Makes a classifier's signatures, for classes with probabilities, independent labels or a score.

Shapes: B texts, T tokens of a row, C classes.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import tensorflow as tf

from finetuning.classification.head import SequenceClassifier
from finetuning.saved_models import interpret_logits
from finetuning.serving.served_model import ServedModel
from finetuning.serving.signatures import Signatures, ids_signature, inputs, longest_row
from finetuning.serving.text_rows import TextRows

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def signatures(loaded: "LoadedModel") -> Signatures:
    """Makes the `Signatures` of a `LoadedModel` whose task is "classification"."""
    model, tokenizer, labels = loaded.model, loaded.tokenizer, loaded.labels
    assert tokenizer is not None  # the export refuses a fine-tuned model without one
    max_length = longest_row(loaded)

    def compute(batch):
        return name_classes(model, labels, model(batch)["logits"])

    served = ServedModel(model, compute, tokenizer.pad_id or 0)
    texts = TextRows(tokenizer)

    @tf.function(input_signature=inputs(tf.string, 1, "text"), autograph=False)
    def single(text):
        return served.from_rows(texts.singles(text, max_length))

    @tf.function(input_signature=inputs(tf.string, 1, "text", "second"), autograph=False)
    def pair(text, second):
        return served.from_rows(texts.pairs(text, second, max_length))

    functions = {"serving_default": single, "pairs": pair, "ids": ids_signature(served)}
    return Signatures(functions, served, texts)


def name_classes(
    model: SequenceClassifier, labels: Sequence[str], logits: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Returns the outputs for logits [B, C].

    "probabilities" [B, C]; "labels" [B, C], the classes' names; and "label" [B], the most probable
    one, or for independent labels "predicted", bool [B, C]. For regression only "score" [B].
    """
    outputs = interpret_logits(model, logits)
    if model.classes == 1 and not model.multi_label:
        return {"score": outputs["predictions"]}
    names = tf.constant(labels)  # [C]
    of_all = tf.repeat(names[tf.newaxis], tf.shape(logits)[0], axis=0)  # [B, C]
    named = {"probabilities": outputs["probabilities"], "labels": of_all}
    if model.multi_label:
        return {**named, "predicted": outputs["predictions"] > 0}
    return {**named, "label": tf.gather(names, outputs["predictions"])}
