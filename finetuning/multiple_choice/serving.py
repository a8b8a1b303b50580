"""Makes the signatures of a model that chooses between options.

Shapes: B questions, C options, T tokens of a row.
"""

from typing import TYPE_CHECKING

import tensorflow as tf

from finetuning.inputs import ROW_INPUTS
from finetuning.multiple_choice.data import SPECIALS, trims_options
from finetuning.serving.served_model import Rows, ServedModel
from finetuning.serving.signatures import Signatures, inputs, longest_row
from finetuning.serving.text_rows import TextRows, heads, parts

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel

# The whitespace that Python's str.strip() removes from both ends.
_ENDS = r"^[\t-\r\x1c-\x1f\x{85}\pZ]+|[\t-\r\x1c-\x1f\x{85}\pZ]+$"


def signatures(loaded: "LoadedModel") -> Signatures:
    """Makes the `Signatures` of a `LoadedModel` whose task is "multiple_choice"."""
    model, tokenizer, max_length = loaded.model, loaded.tokenizer, longest_row(loaded)
    assert tokenizer is not None  # the export refuses a fine-tuned model without one
    max_qa_length = min(loaded.settings["max_qa_length"], max_length - SPECIALS)

    def compute(batch):
        options = {name: batch[name][:, tf.newaxis] for name in ROW_INPUTS}  # [B * C, 1, T]
        return {"logits": model(options)["logits"][:, 0]}  # [B * C, 1] -> [B * C]

    served = ServedModel(model, compute, tokenizer.pad_id or 0)
    texts = TextRows(tokenizer)

    texts_in = (*inputs(tf.string, 1, "context", "question"), *inputs(tf.string, 2, "options"))

    @tf.function(input_signature=texts_in, autograph=False)
    def choose(context, question, options):
        count = tf.shape(options)[1]  # C
        if trims_options(tokenizer):
            options = tf.strings.regex_replace(options, _ENDS, "")
        filled = tf.reshape(fill_in(question, options), [-1])  # [B * C]
        pairs = texts.graph.encode_batch(filled)  # [B * C, (pieces)]
        limits = pairs.row_limits()
        kept = tf.minimum(pairs.row_lengths(), max_qa_length)
        pairs = parts(pairs.values, limits - kept, limits)
        contexts = texts.graph.encode_batch(context)
        contexts = tf.gather(contexts, tf.repeat(tf.range(contexts.nrows()), count))
        contexts = heads(contexts, max_length - SPECIALS - kept)
        logits = served.from_rows(_rows(texts, contexts, pairs))["logits"]  # [B * C]
        return _choices(tf.reshape(logits, [-1, tf.maximum(count, 1)]))  # [B, C]

    @tf.function(input_signature=inputs(tf.int32, 3, *ROW_INPUTS), autograph=False)
    def ids(input_ids, input_mask, segment_ids):
        values = (input_ids, input_mask, segment_ids)
        return of_options(served.run, dict(zip(ROW_INPUTS, values, strict=True)))

    def of_options(run, batch):
        shape = tf.shape(batch["input_ids"])  # [B, C, T]
        rows = {name: tf.reshape(batch[name], [-1, shape[2]]) for name in ROW_INPUTS}  # [B * C, T]
        return _choices(tf.reshape(run(rows)["logits"], shape[:2]))

    functions = {"serving_default": choose, "ids": ids}
    return Signatures(functions, served, texts, lambda batch: of_options(compute, batch))


def _rows(texts, contexts, pairs):
    """Makes rows [CLS] context [SEP] question with option [SEP]; always adds the last [SEP]."""
    rows = texts.join(contexts)
    ends = tf.fill([pairs.nrows(), 1], texts.sep)
    return Rows(tf.concat([rows.ids, pairs, ends], axis=1), rows.first_lengths)


def _choices(logits):
    """Returns "probabilities" [B, C] and "choice", the index of the most probable option [B]."""
    return {
        "probabilities": tf.nn.softmax(logits),
        "choice": tf.argmax(logits, axis=-1, output_type=tf.int32),
    }


def fill_in(question: tf.Tensor, options: tf.Tensor) -> tf.Tensor:
    """Puts options [B, C] into the blanks "_" of questions [B], or behind them: string [B, C].

    The graph form of `finetuning.multiple_choice.data.fill_in`.
    """
    blanks = tf.strings.split(question, "_")  # [B, (parts)]
    owners = tf.repeat(tf.range(tf.size(question)), tf.shape(options)[1])  # [B * C]
    rows = tf.gather(blanks, owners)  # [B * C, (parts)]
    flat = tf.reshape(options, [-1])  # [B * C]
    last = tf.gather(rows.row_limits() - 1, rows.value_rowids())  # [parts]
    is_last = tf.range(tf.size(rows.values, tf.int64)) == last
    following = tf.where(is_last, "", tf.gather(flat, rows.value_rowids()))
    joined = tf.strings.reduce_join(rows.with_values(rows.values + following), axis=1)  # [B * C]
    after = tf.gather(question, owners) + " " + flat
    chosen = tf.where(rows.row_lengths() > 1, joined, after)
    return tf.reshape(chosen, tf.shape(options))
