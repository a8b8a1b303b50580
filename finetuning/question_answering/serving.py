"""Makes the signatures of a model that answers questions with a part of a text.

Long texts are cut into windows in the graph, and answers are chosen as in run_squad.

Shapes: B questions, W windows, T tokens (pieces) of a row, L answer lengths, M spans of a window.
"""

from typing import TYPE_CHECKING

import tensorflow as tf

from finetuning.inputs import ROW_INPUTS
from finetuning.question_answering.answers import SPANS_PER_TEXT
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.question_answering.served_answers import Candidates, best_answers, best_of_each
from finetuning.question_answering.served_windows import make_windows
from finetuning.question_answering.windows import SPECIALS
from finetuning.serving.served_model import ServedModel
from finetuning.serving.signatures import Signatures, ids_signature, inputs, longest_row
from finetuning.serving.text_rows import TextRows, heads

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def signatures(loaded: "LoadedModel") -> Signatures:
    """Makes the `Signatures` of a `LoadedModel` whose task is "question_answering"."""
    assert loaded.tokenizer is not None  # the export requires a fine-tuned model's tokenizer
    settings, texts = loaded.settings, TextRows(loaded.tokenizer)
    max_length = longest_row(loaded)
    query_length = min(settings["max_query_length"], max_length - SPECIALS - 1)
    n_best, longest = settings["n_best_size"], settings["max_answer_length"]
    threshold = None
    if settings["version_2_with_negative"]:
        threshold = settings["null_score_diff_threshold"]
    has_beams = isinstance(loaded.model, BeamSpanModel)
    served = (_serve_beams if has_beams else _serve_spans)(loaded)

    @tf.function(input_signature=inputs(tf.string, 1, "question", "context"), autograph=False)
    def answer(question, context):
        questions = heads(texts.graph.encode_batch(question), query_length)  # [B, (pieces)]
        pieces = texts.graph.encode_with_offsets(context)
        windows = make_windows(texts, questions, pieces, max_length, settings["doc_stride"])
        outputs = served.from_rows(windows.rows)  # of each window
        if has_beams:
            candidates, nulls = _beam_candidates(loaded.model, windows, outputs, longest)
        else:
            candidates, nulls = _span_candidates(windows, outputs, longest)
        kept = SPANS_PER_TEXT * n_best
        candidates = best_of_each(windows, candidates, kept)
        if threshold is None and not has_beams:
            nulls = None
        return best_answers(context, windows, candidates, nulls, (n_best, threshold, has_beams))

    return Signatures({"serving_default": answer, "ids": ids_signature(served)}, served, texts)


def _serve_spans(loaded):
    """Makes a `ServedModel` with start and end logits [B, T]."""
    model, names = loaded.model, ("start_logits", "end_logits")
    return ServedModel(model, model, loaded.tokenizer.pad_id or 0, token_outputs=names)


def _serve_beams(loaded):
    """Makes a `ServedModel` with the beams of a `BeamSpanModel`.

    Answers are allowed at [CLS] and in the second segment except for its [SEP], as in
    `finetuning.question_answering.windows.ContextWindow.p_mask`.
    """
    model = loaded.model
    widest = max(model.start_n_top, model.end_n_top)

    def compute(batch):
        length = tf.maximum(tf.shape(batch["input_ids"])[1], widest)
        more = length - tf.shape(batch["input_ids"])[1]
        batch = {name: tf.pad(batch[name], [[0, 0], [0, more]]) for name in ROW_INPUTS}
        mask = batch["input_mask"]
        last = tf.reduce_sum(mask, axis=1, keepdims=True) - 1  # [B, 1]
        places = tf.range(length)[tf.newaxis]  # [1, T]
        allowed = (places == 0) | ((batch["segment_ids"] == 1) & (places < last))  # [B, T]
        return model({**batch, "p_mask": tf.cast(~allowed, tf.int32)})

    return ServedModel(model, compute, loaded.tokenizer.pad_id or 0)


def _span_candidates(windows, outputs, longest):
    """Returns the same spans as `finetuning.question_answering.answers.allowed_spans`.

    The result is the candidates [W, M], ordered by start and then by length, and the score of "no
    answer" in each window, [W].
    """
    # The largest number of context tokens in a window; 0 if there are no windows.
    most = tf.reduce_max(tf.concat([windows.sizes, [0]], axis=0))
    begins = tf.range(most)[tf.newaxis, :, tf.newaxis]  # [1, pieces, 1]
    lengths = tf.range(tf.minimum(tf.cast(longest, tf.int64), most))[tf.newaxis, tf.newaxis]
    ends = begins + lengths  # [1, pieces, L]
    allowed = windows.is_max_context[:, :, tf.newaxis] & (
        ends < windows.sizes[:, tf.newaxis, tf.newaxis]
    )  # [W, pieces, L]
    shape = tf.shape(allowed)
    first = windows.rows.first_lengths[:, tf.newaxis, tf.newaxis]  # [W, 1, 1]
    start, end = outputs["start_logits"], outputs["end_logits"]  # [W, T]
    last_place = tf.cast(tf.shape(start)[1], tf.int64) - 1
    starts, ends_at = (tf.minimum(places + first, last_place) for places in (begins, ends))
    of_start = tf.gather(start, starts[:, :, 0], batch_dims=1)[:, :, tf.newaxis]  # [W, pieces, 1]
    score = of_start + tf.gather(end, ends_at, batch_dims=1)  # [W, pieces, L]
    flat = [shape[0], -1]
    candidates = Candidates(
        tf.reshape(tf.broadcast_to(begins, shape), flat),
        tf.reshape(tf.broadcast_to(ends, shape), flat),
        tf.reshape(tf.where(allowed, score, -float("inf")), flat),
    )
    return candidates, start[:, 0] + end[:, 0]


def _beam_candidates(model, windows, outputs, longest):
    """Returns the spans of `finetuning.question_answering.answers.beam_spans` and cls_logits."""
    ends_of_each = model.end_n_top
    first = windows.rows.first_lengths[:, tf.newaxis]  # [W, 1]
    begin = tf.cast(tf.repeat(outputs["start_top_index"], ends_of_each, axis=1), tf.int64) - first
    end = tf.cast(outputs["end_top_index"], tf.int64) - first  # [W, M]
    score = tf.repeat(outputs["start_top_log_probs"], ends_of_each, axis=1)
    score += outputs["end_top_log_probs"]
    allowed = (begin >= 0) & (begin <= end) & (end < windows.sizes[:, tf.newaxis])
    allowed &= end - begin < longest
    most = tf.cast(tf.shape(windows.is_max_context)[1], tf.int64) - 1
    inside = tf.clip_by_value(begin, 0, tf.maximum(most, 0))
    padded = tf.pad(windows.is_max_context, [[0, 0], [0, 1]])  # a window may have no tokens
    allowed &= tf.gather(padded, inside, batch_dims=1)
    score = tf.where(allowed, score, -float("inf"))
    return Candidates(begin, end, score), outputs["cls_logits"]
