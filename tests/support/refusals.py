"""What every refusal of bad input is: an `InputError` of one line."""

import contextlib

import pytest

from bert_common.errors import InputError


@contextlib.contextmanager
def refused(*words):
    """The block is refused in one line that holds each of the words."""
    with pytest.raises(InputError) as error:
        yield error
    message = str(error.value)
    assert "\n" not in message and all(str(word) in message for word in words), message
