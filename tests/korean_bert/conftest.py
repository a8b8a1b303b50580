"""A tiny pre-trained model in Python, for tests that change nothing of it."""

import pytest

from korean_bert import load_model
from tests.support.models.model_folders import write_folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_folder(folder, sizes={"initializer_range": 0.4})
    return load_model(folder)
