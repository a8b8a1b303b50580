"""Bad values and bad files: each is one clear line and exit status 1, whatever the program."""

import pytest

from tests.support.bad_inputs.bad_input import Case, run_case, run_program, stop_before_work
from tests.support.bad_inputs.bad_input_programs import PROGRAMS

pytestmark = pytest.mark.usefixtures("forget_models")

# How many refused cases of each program are examined.
SOME, ALL = 3, 300


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    stop_before_work(monkeypatch)


def look(world, name, count):
    """Draws cases until `count` were refused."""
    refused, problems, seed = 0, [], 0
    while refused < count and seed < 4 * count:
        was_refused, wrong = run_case(world, name, seed)
        refused, seed = refused + was_refused, seed + 1
        problems += [wrong] if wrong else []
    assert not problems, f"{len(problems)} of {seed}:\n" + "\n".join(problems[:20])
    assert refused >= count


@pytest.mark.parametrize("name", PROGRAMS)
def test_good_input(world, name):
    status, lines, trace = run_program(world, name, Case("nothing", {}))
    assert (status, lines, trace) in ((0, [], None), ("started", [], None))


@pytest.mark.parametrize("name", PROGRAMS)
def test_some(world, name):
    look(world, name, SOME)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_all(world, name):
    look(world, name, ALL)
