"""Defines the errors of requests, with codes for which the page has texts."""

from typing import Any

from bert_common.errors import InputError
from korean_bert.errors import TooManyPiecesError

# Code -> the message in English, for clients other than the page. The page shows its own text
# "error_CODE", in its language, with the same values in the braces.
MESSAGES = {
    "text_too_long": "{name} must have at most {most} characters. Received: {received}",
    "not_unicode": "{name} must be Unicode text. Received: half of a surrogate pair",
    "too_many_pieces": "a text must have at most {most} tokens with [CLS] and [SEP]. "
    "Received: {received}",
    "too_many_masks": "a text must have at most {most} [MASK]. Received: {received}",
    "too_many_options": "{name} must be a list of 2 to {most} strings. Received: {received}",
    "too_many_lines": "{name} must be a list of 1 to {most} strings. Received: {received}",
    "word_not_in_sentence": "both sentences must hold {word!r}. Received: {sentence!r}",
    "word_without_pieces": "the word must have tokens. Received: {word!r}",
    "too_large": "a request must have at most {most} bytes. Received: {received}",
    "late": "a request must arrive within {seconds} seconds",
    "queue_full": "at most {most} requests may wait for the model. Received: one more; try again "
    "in a moment",
    "failed": "the program failed: {error}; the terminal says where",
    # Never caused by the page: mistakes of other programs, and requests beyond a model.
    "other": "{message}",
}


class RequestError(InputError):
    """Raised if a request of the page, or of another program, cannot be answered.

    The message is a line of `MESSAGES` with `values` in its braces.
    """

    def __init__(self, code: str, **values: Any) -> None:
        super().__init__(MESSAGES[code].format(**values))
        self.code, self.values = code, values


def malformed(message: str) -> RequestError:
    """Returns the error for a request that the page never sends."""
    return RequestError("other", message=message)


def request_error(error: InputError) -> RequestError:
    """Turns an `InputError` of an answering function into a `RequestError`."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, TooManyPiecesError):
        return RequestError("too_many_pieces", most=error.most, received=error.received)
    return malformed(" ".join(str(error).split()))
