"""Makes the signatures of a model that finds named entities in texts.

Long texts are cut into windows in the graph; tags and entities are as run_ner writes them.

Shapes: B texts, W windows, T tokens (pieces) of a row, P tokens of all texts, U units of all texts,
E entities of all texts, C classes.
"""

from typing import TYPE_CHECKING

import tensorflow as tf

from finetuning.ner.data import format_of
from finetuning.ner.labels import check_tags
from finetuning.ner.served_entities import Tags, align, find_entities, find_units
from finetuning.serving.characters import Characters
from finetuning.serving.served_model import ServedModel
from finetuning.serving.signatures import Signatures, ids_signature, inputs, longest_row
from finetuning.serving.text_rows import TextRows, dense, parts

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def signatures(loaded: "LoadedModel") -> Signatures:
    """Makes the `Signatures` of a `LoadedModel` whose task is "ner"."""
    model, tokenizer, settings = loaded.model, loaded.tokenizer, loaded.settings
    assert tokenizer is not None  # the export requires a fine-tuned model's tokenizer
    texts = TextRows(tokenizer)
    names, glue = list(loaded.labels), format_of(settings["task_name"], loaded.source).glue
    check_tags(names, loaded.source)
    max_length = longest_row(loaded)

    def compute(batch):
        logits = model(batch)["logits"]  # [B, T, C]
        best = tf.gather(tf.constant(names), tf.argmax(logits, axis=-1))  # [B, T]
        return {"logits": logits, "probabilities": tf.nn.softmax(logits), "tags": best}

    tokens = ("logits", "probabilities", "tags")
    served = ServedModel(model, compute, tokenizer.pad_id or 0, token_outputs=tokens)

    @tf.function(input_signature=inputs(tf.string, 1, "text"), autograph=False)
    def find(text):
        ids, spans = texts.graph.encode_with_offsets(text)  # [B, (pieces)], [B, (pieces), 2]
        logits = _piece_logits(served, texts, ids, max_length)  # [P, C]
        characters = Characters(text)
        units = find_units(characters, by_character=not glue)
        alignment = align(units, spans, characters.rows.row_starts())
        found = find_entities(logits, ids.row_splits, units, alignment, Tags(names))
        splits = found.splits  # [B + 1]
        starts, ends = dense(found.starts, 0, splits), dense(found.ends, 0, splits)  # [B, E]
        is_padding = ~dense(tf.ones_like(found.starts, tf.bool), False, splits)
        return {
            "entities": characters.cut(starts, ends),
            "starts": tf.where(is_padding, -1, tf.cast(starts, tf.int32)),
            "ends": tf.where(is_padding, -1, tf.cast(ends, tf.int32)),
            "kinds": dense(found.kinds, "", splits),
            "probabilities": dense(tf.cast(found.probabilities, tf.float32), 0.0, splits),
        }

    return Signatures({"serving_default": find, "ids": ids_signature(served)}, served, texts)


def _piece_logits(served, texts, ids, max_length):
    """Returns all tokens' logits [P, C], each from the window that shows more of its context.

    As `finetuning.ner.labels.window_bounds` with overlap. `ids` is an int32 RaggedTensor
    [B, (tokens)].
    """
    count = ids.row_lengths()  # [B]
    room = max_length - 2
    step = room - room // 2
    # At least 1: a text without tokens has one window without tokens.
    windows = tf.maximum((count - room // 2 + step - 1) // step, 1)  # [B]
    owners = tf.repeat(tf.range(tf.size(windows, tf.int64)), windows)  # [W]
    places = tf.ragged.range(windows).values  # [W]: the number of each among its text's
    size = tf.gather(count, owners)
    begins = places * step
    ends = tf.minimum(begins + room, size)
    # Overlapping windows are split in the middle of their overlap.
    before_end = tf.minimum(begins - step + room, size)
    first = tf.where(places > 0, (begins + before_end) // 2, 0)
    is_last = places == tf.gather(windows, owners) - 1
    last = tf.where(is_last, size, (begins + step + ends) // 2)
    starts = tf.gather(ids.row_starts(), owners)
    rows = texts.join(parts(ids.values, starts + begins, starts + ends))
    logits = served.from_rows(rows)["logits"]  # [W, T, C]
    length = tf.shape(logits, tf.int64)[1]
    flat = tf.reshape(logits, [-1, logits.shape[2]])  # [W * T, C]
    row = tf.range(tf.size(owners), dtype=tf.int64) * length + 1 - begins  # [CLS] is at position 0
    return parts(flat, row + first, row + last).values
