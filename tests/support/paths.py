"""Where the tests, their data and the code lie, for tests in any folder."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
TEST_DATA = TESTS / "data"

# For programs that tests start, which import what tests import.
PYTHONPATH = os.pathsep.join(
    map(str, (ROOT, TESTS, *sorted({path.parent for path in TESTS.glob("*/*.py")})))
)
