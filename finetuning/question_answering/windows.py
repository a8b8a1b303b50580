"""Turns questions about texts into rows for an encoder; a sliding window splits long texts.

Shapes: B batch, T tokens (pieces) of a row, Q tokens of a question, C tokens of a context,
W context tokens of a window.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert_common.errors import InputError
from bert_common.progress import with_progress
from finetuning.inputs import Batch, pad_rows
from finetuning.question_answering.data import Answer, Question
from tokenization.base import TokenizerInterface

# [CLS] question [SEP] context [SEP]
SPECIALS = 3


class EncodedQuestion(NamedTuple):
    """A tokenized question and context; questions about the same context share its arrays."""

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
    # The row positions of the first answer's first and last token; both 0, the position of [CLS],
    # and `is_impossible` true, if the answer is not in this window or not known.
    start_position: int
    end_position: int
    is_impossible: bool

    @property
    def segment_ids(self) -> np.ndarray:
        """[T] int32: 0 up to the first [SEP], 1 after it."""
        return np.repeat(np.array([0, 1], np.int32), [self.first, len(self.ids) - self.first])

    @property
    def p_mask(self) -> np.ndarray:
        """[T] int32: 0 where answers are allowed, in the context and, as Google, at [CLS]."""
        mask = np.ones(len(self.ids), np.int32)
        mask[0] = 0
        mask[self.first : self.first + len(self.spans)] = 0
        return mask


def encode_questions(
    tokenizer: TokenizerInterface, questions: Sequence[Question], max_query_length: int
) -> list[EncodedQuestion]:
    """Tokenizes questions, and the context of consecutive questions once.

    Questions are cut off after `max_query_length` tokens.
    """
    encoded = []
    shown = with_progress(questions, "encoding", "questions")
    for context, group in itertools.groupby(shown, lambda entry: entry.context):
        ids, spans = tokenizer.encode_with_offsets(context)
        context_ids = np.array(ids, np.int32)
        context_spans = np.array(spans, np.int32).reshape(-1, 2)  # empty context: [0] -> [0, 2]
        for entry in group:
            question_ids = np.array(tokenizer.encode(entry.question)[:max_query_length], np.int32)
            encoded.append(EncodedQuestion(question_ids, context_ids, context_spans))
    return encoded


def make_windows(
    questions: Sequence[Question],
    encoded: Sequence[EncodedQuestion],
    tokenizer: TokenizerInterface,
    max_seq_length: int,
    doc_stride: int,
    training: bool = False,
) -> tuple[list[ContextWindow], int]:
    """Makes the windows of all questions, as in google-research/bert run_squad.py.

    Args:
        max_seq_length: the largest T; a question must leave room for a token of the context.
        doc_stride: the number of tokens between the starts of consecutive windows, at least 1.
        training: whether to leave out questions whose answer has no token, such as control
            characters.

    Returns:
        The windows in the order of the questions, and the number of questions left out.
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
        # The start is -1 if `read_questions` kept an answer that is not in the text.
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
    """Returns the starts and the lengths of the windows over a context of `length` tokens.

    An empty context has one window, of length 0.
    """
    starts, lengths = [0], [min(length, room)]
    while starts[-1] + lengths[-1] < length:
        starts.append(starts[-1] + min(lengths[-1], doc_stride))
        lengths.append(min(length - starts[-1], room))
    return starts, lengths


def max_context_windows(starts: Sequence[int], lengths: Sequence[int], length: int) -> np.ndarray:
    """Returns the index [C] of the window that shows each token with the most context.

    As in google-research/bert, a window's score is the smaller of the numbers of tokens before and
    after the token, plus a hundredth of the window's length. The first window wins ties.
    """
    best, highest = np.zeros(length, np.int64), np.full(length, -np.inf)  # [C] each
    for number, (start, size) in enumerate(zip(starts, lengths, strict=True)):
        inside = np.arange(size)
        scores = np.minimum(inside, size - 1 - inside) + 0.01 * size
        better = np.flatnonzero(scores > highest[start : start + size])
        best[start + better], highest[start + better] = number, scores[better]
    return best


def answer_pieces(spans: np.ndarray, answer: Answer) -> tuple[int, int] | None:
    """Returns the first and last token, of `spans` [C, 2], in a `data.Answer`, or None."""
    end = answer.start + len(answer.text)
    pieces = np.flatnonzero((spans[:, 0] < end) & (spans[:, 1] > answer.start))
    return (int(pieces[0]), int(pieces[-1])) if len(pieces) else None


def answer_span(context: str, spans: np.ndarray, first: int, last: int) -> tuple[int, int]:
    """Returns the first character and end of a range of tokens, stripped of white space."""
    start, end = int(spans[first][0]), int(spans[last][1])
    text = context[start:end]
    start += len(text) - len(text.lstrip())
    return start, start + len(text.strip())


def pad_windows(windows: Sequence[ContextWindow], length: int, pad_id: int) -> Batch:
    """Pads windows into a batch of int32 arrays.

    The batch has input_ids, input_mask, segment_ids, p_mask [B, length]; start_positions,
    end_positions, is_impossible [B].
    """
    batch = pad_rows(windows, length, pad_id)
    batch["p_mask"] = np.ones((len(windows), length), np.int32)
    for number, window in enumerate(windows):
        batch["p_mask"][number, : len(window.ids)] = window.p_mask
    for name in ("start_position", "end_position"):
        batch[f"{name}s"] = np.array([getattr(window, name) for window in windows], np.int32)
    batch["is_impossible"] = np.array([window.is_impossible for window in windows], np.int32)
    return batch
