"""Makes a pre-trained model's signatures, for text vectors and logits at masked positions.

Shapes: B texts, T tokens of a row, H hidden, P positions, V vocabulary.
"""

import tensorflow as tf

from bert_tf.layers import gather_positions
from finetuning.inputs import ROW_INPUTS
from finetuning.serving.served_model import ServedModel
from finetuning.serving.signatures import Signatures, ids_signature, inputs, longest_row
from finetuning.serving.text_rows import TextRows
from model_formats.loaded_model import LoadedModel


def signatures(loaded: LoadedModel) -> Signatures:
    """Makes the `Signatures` of a `LoadedModel` whose task is "pretraining"."""
    model, max_length = loaded.model, longest_row(loaded)

    def compute(batch):
        x = model.encoder(batch)["sequence_output"]  # [B, T, H]
        return {"tokens": x, **pooled(x, batch["input_mask"])}

    pad_id = 0 if loaded.tokenizer is None else loaded.tokenizer.pad_id or 0
    served = ServedModel(model, compute, pad_id, token_outputs=("tokens",))
    functions = {"ids": ids_signature(served)}
    if words := loaded.head_outputs().get("masked_lm_logits"):
        functions["masked_words"] = _masked_words(model, served, words)
    if loaded.tokenizer is None:
        return Signatures(functions, served, None)
    texts = TextRows(loaded.tokenizer)

    @tf.function(input_signature=inputs(tf.string, 1, "text"), autograph=False)
    def embed(text):
        outputs = served.from_rows(texts.singles(text, max_length))
        return {name: outputs[name] for name in ("mean", "cls")}

    return Signatures({"serving_default": embed, **functions}, served, texts)


def pooled(x: tf.Tensor, mask: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns "cls" and the "mean" over each row's tokens with [CLS] and [SEP], float32 [B, H].

    Takes x [B, T, H] and the mask, int32 [B, T].
    """
    x = tf.cast(x, tf.float32)
    weights = tf.cast(mask, tf.float32)[:, :, tf.newaxis]  # [B, T, 1]
    mean = tf.math.divide_no_nan(tf.reduce_sum(x * weights, axis=1), tf.reduce_sum(weights, axis=1))
    return {"mean": mean, "cls": x[:, 0]}


def _masked_words(model, served, compute):
    """Returns the signature that predicts the logits over the vocabulary at masked positions."""

    names = (*ROW_INPUTS, "masked_lm_positions")

    @tf.function(input_signature=inputs(tf.int32, 2, *names), autograph=False)
    def masked_words(input_ids, input_mask, segment_ids, masked_lm_positions):
        values = (input_ids, input_mask, segment_ids)
        x = served.run(dict(zip(ROW_INPUTS, values, strict=True)))["tokens"]  # [B, T, H]
        vectors = gather_positions(x, masked_lm_positions)  # [B, P, H]
        encoded = {"sequence_output": vectors}
        used = (*model.masked_lm.variables, model.encoder.embeddings.word_embeddings)
        return {"logits": served.with_weights(lambda: compute(encoded), used)}  # [B, P, V]

    return masked_words
