"""Defines the errors of requests, with codes for which the page has texts."""

import json
from pathlib import Path
from typing import Any

from bert_common.errors import InputError
from korean_bert.errors import TooManyPiecesError

# The texts of the page in English; "error_CODE" is the message of a code.
TEXTS = json.loads((Path(__file__).parent / "page/texts/en.json").read_text(encoding="utf-8"))


class RequestError(InputError):
    """Raised if a request of the page, or of another program, cannot be answered.

    The page shows its text of the code, in its language, with `values` in the braces. Other clients
    get the English one as the message.
    """

    def __init__(self, code: str, **values: Any) -> None:
        super().__init__(TEXTS[f"error_{code}"].format(**values))
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
