"""Turns questions about texts into rows for an encoder; long texts are split by a sliding window.

Shapes: B batch, T pieces of a row, Q pieces of a question, C pieces of a context, W pieces of the
context in a window.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_common.errors import InputError
from finetuning.inputs import Batch, encode_groups, pad_rows
from finetuning.question_answering.data import Answer, Question
from tokenization.base import TokenizerInterface

# [CLS] question [SEP] context [SEP]
SPECIALS = 3


class EncodedQuestion(NamedTuple):
    """A question and its context as pieces; questions about the same context share its arrays."""

    question_ids: np.ndarray  # [Q] int32
    context_ids: np.ndarray  # [C] int32
    spans: np.ndarray  # [C, 2] int32: first character and end of each piece


class ContextWindow(NamedTuple):
    """A row: [CLS] question [SEP] part of the context [SEP]."""

    question: int  # the index of its question
    ids: np.ndarray  # [T] int32
    first: int  # where the context begins in the row, Q + 2
    spans: np.ndarray  # [W, 2] int32, first character and end of each of its pieces in the context
    is_max_context: np.ndarray  # [W] bool: whether no window shows more of a piece's context
    # The first and the last piece of the first answer in the row; both 0, that is [CLS], and
    # `is_impossible` true, if the answer is not in this window or not known.
    start_position: int
    end_position: int
    is_impossible: bool

    @property
    def segment_ids(self) -> np.ndarray:
        """[T] int32: 0 up to the first [SEP], 1 after it."""
        return np.repeat(np.array([0, 1], np.int32), [self.first, len(self.ids) - self.first])

    @property
    def p_mask(self) -> np.ndarray:
        """[T] int32: 0 where answers may be: in the context and, as Google, at [CLS]."""
        mask = np.ones(len(self.ids), np.int32)
        mask[0] = 0
        mask[self.first : self.first + len(self.spans)] = 0
        return mask


def encode_questions(
    tokenizer: TokenizerInterface,
    questions: Sequence[Question],
    max_query_length: int,
    workers: int | None = None,
) -> list[EncodedQuestion]:
    """Tokenizes questions and contexts; each context, whose questions are neighbours, once.

    More than `max_query_length` pieces of a question are cut off; workers as for `encode_groups`.
    """
    groups = [
        (context, [entry.question for entry in group])
        for context, group in itertools.groupby(questions, lambda entry: entry.context)
    ]
    return encode_groups(_encode_task, groups, max_query_length, tokenizer, workers)


def _encode_task(plan, tokenizer, number):
    tasks, max_query_length = plan
    encoded = []
    for context, questions in tasks[number]:
        ids, spans = tokenizer.encode_with_offsets(context)
        context_ids = np.array(ids, np.int32)
        spans = np.array(spans, np.int32).reshape(-1, 2)  # of an empty context [0] -> [0, 2]
        for question in questions:
            question_ids = np.array(tokenizer.encode(question)[:max_query_length], np.int32)
            encoded.append(EncodedQuestion(question_ids, context_ids, spans))
    return encoded


def make_windows(
    questions: Sequence[Question],
    encoded: Sequence[EncodedQuestion],
    tokenizer: TokenizerInterface,
    max_seq_length: int,
    doc_stride: int,
    training: bool = False,
) -> tuple[list[ContextWindow], int]:
    """Makes the windows of all questions, as google-research/bert run_squad.py.

    Args:
        max_seq_length: the largest T; a question that leaves no room for the context is refused.
        doc_stride: by how many pieces a window begins after the previous one, at least 1.
        training: whether questions are left out whose answer has no piece, such as control
            characters.

    Returns:
        Windows in the order of the questions, and how many questions were left out.
    """
    if doc_stride < 1:  # windows would never reach the end
        raise InputError(f"--doc_stride must be at least 1. Received: {doc_stride}")
    windows, left_out = [], 0
    for number, (question, pieces) in enumerate(zip(questions, encoded, strict=True)):
        room = max_seq_length - len(pieces.question_ids) - SPECIALS
        if room < 1:
            raise InputError(
                f"--max_seq_length must leave room for {SPECIALS} special tokens, a question and a "
                f"token of the text. Received: {max_seq_length}, a question of "
                f"{len(pieces.question_ids)} tokens"
            )
        answer = None
        # -1: `read_questions` kept one that is not in the text.
        known = question.answers and not question.is_impossible
        if known and question.answers[0].start >= 0:
            answer = answer_pieces(pieces.spans, question.answers[0])
            if training and answer is None:
                left_out += 1
                continue
        windows += _windows_of(number, pieces, tokenizer, room, doc_stride, answer)
    return windows, left_out


def _windows_of(number, pieces, tokenizer, room, doc_stride, answer):
    """Yields the windows of one question."""
    question, context = pieces.question_ids, pieces.context_ids
    begin = np.array([tokenizer.cls_id, *question, tokenizer.sep_id], np.int32)
    first, starts, lengths = len(begin), *window_places(len(context), room, doc_stride)
    best = max_context_windows(starts, lengths, len(context))  # [C]
    for index, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        end = start + length
        inside = answer is not None and start <= answer[0] and answer[1] < end
        yield ContextWindow(
            question=number,
            ids=np.concatenate([begin, context[start:end], [tokenizer.sep_id]], dtype=np.int32),
            first=first,
            spans=pieces.spans[start:end],
            is_max_context=best[start:end] == index,
            start_position=answer[0] - start + first if inside else 0,
            end_position=answer[1] - start + first if inside else 0,
            is_impossible=not inside,
        )


def window_places(length: int, room: int, doc_stride: int) -> tuple[list[int], list[int]]:
    """Lists where the windows over a context of `length` pieces begin, and how long each is.

    An empty context has one window, of length 0.
    """
    starts, lengths = [0], [min(length, room)]
    while starts[-1] + lengths[-1] < length:
        starts.append(starts[-1] + min(lengths[-1], doc_stride))
        lengths.append(min(length - starts[-1], room))
    return starts, lengths


def max_context_windows(starts: Sequence[int], lengths: Sequence[int], length: int) -> np.ndarray:
    """Finds, for each piece of a context, the window that shows it with the most context.

    As google-research/bert: a window's score is the number of pieces before the piece or after it,
    whichever is smaller, plus a hundredth of the window's length; of equal ones the first wins.
    Returns their indices, [C].
    """
    places = np.arange(length)
    scores = np.full((len(starts), length), -np.inf)  # [windows, C]
    for row, start, size in zip(scores, starts, lengths, strict=True):
        inside = places[start : start + size] - start
        row[start : start + size] = np.minimum(inside, size - 1 - inside) + 0.01 * size
    return scores.argmax(axis=0)


def answer_pieces(spans: np.ndarray, answer: Answer) -> tuple[int, int] | None:
    """The first and the last piece, of `spans` [C, 2], in a `data.Answer`; None without any."""
    end = answer.start + len(answer.text)
    pieces = np.flatnonzero((spans[:, 0] < end) & (spans[:, 1] > answer.start))
    return (int(pieces[0]), int(pieces[-1])) if len(pieces) else None


def answer_span(context: str, spans: np.ndarray, first: int, last: int) -> tuple[int, int]:
    """First character and end of the first to the last piece, without white space around them."""
    start, end = int(spans[first][0]), int(spans[last][1])
    text = context[start:end]
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def pad_windows(windows: Sequence[ContextWindow], length: int, pad_id: int) -> Batch:
    """Pads windows into a batch of int32 arrays.

    input_ids, input_mask, segment_ids, p_mask [B, length]; start_positions, end_positions,
    is_impossible [B].
    """
    batch = pad_rows(windows, length, pad_id)
    batch["p_mask"] = np.ones((len(windows), length), np.int32)
    for number, window in enumerate(windows):
        batch["p_mask"][number, : len(window.ids)] = window.p_mask
    for name in ("start_position", "end_position"):
        batch[f"{name}s"] = np.array([getattr(window, name) for window in windows], np.int32)
    batch["is_impossible"] = np.array([window.is_impossible for window in windows], np.int32)
    return batch
