"""What tests of bad input share: good files of every kind, models that are forgotten once."""

import keras
import pytest

from tests.support.bad_inputs.bad_input_files import make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder of `make_world`."""
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def forget_models():
    """Once: it collects the garbage of the whole process, half a second."""
    yield
    keras.backend.clear_session()
