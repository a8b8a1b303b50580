"""Defines the error for a request that cannot be answered."""

from bert_common.errors import InputError


class RequestError(InputError):
    """A request of the page, or of another program, has fields that cannot be answered.

    The message is one line, which the page shows.
    """
