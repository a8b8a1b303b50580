"""Folders that the tests use: the code, the test data, larger reference data."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
TEST_DATA = TESTS / "data"

# For programs that tests start, which import what tests import.
PYTHONPATH = os.pathsep.join(map(str, (ROOT, TESTS, TESTS / "support")))

# Tests that need this larger data are skipped where it is absent; nothing essential is tested
# only with it.
SHARED = Path(os.environ.get("SHARED_DATA", ROOT.parent / "shared"))
