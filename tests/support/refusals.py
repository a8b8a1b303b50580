"""What every refusal of bad input is: an `InputError`, of one line in every test."""

import contextlib

import pytest

from bert_common.errors import InputError


@contextlib.contextmanager
def refused(*words):
    """The block is refused with a message that holds each of the words."""
    with pytest.raises(InputError) as error:
        yield error
    message = str(error.value)
    assert all(str(word) in message for word in words), message
