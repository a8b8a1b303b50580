"""The tokenizer of this folder's models."""

import pytest

from tests.support.task_data import write_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("vocabulary"))
