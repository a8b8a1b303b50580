"""What tests of programs share: runs that fail or print, good files of every kind."""

import keras
import pytest

from tests.support.bad_inputs.bad_input_files import make_world
from tests.support.programs import one_line


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The folder of `make_world`."""
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def forget_models():
    """Once: it collects the garbage of the whole process, half a second."""
    yield
    keras.backend.clear_session()


@pytest.fixture
def fails(capsys):
    """Runs a program that must end with status 1 and one line of error, with each of the words."""

    def check(run, *words, **flags):
        capsys.readouterr()
        assert run(**flags) == 1, flags
        line = one_line(capsys)
        assert all(str(word) in line for word in words), line

    return check


@pytest.fixture
def prints(capsys):
    """Runs a program that must succeed; returns what it prints on standard output."""

    def run_and_read(run, **flags):
        capsys.readouterr()
        status, shown = run(**flags), capsys.readouterr()
        assert status == 0, shown.err
        return shown.out

    return run_and_read
