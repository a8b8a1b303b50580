"""The browser of this folder's slow tests."""

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def chromium():
    """One for all tests of a file; they are skipped where it cannot be had."""
    for package in ("starlette", "uvicorn", "selenium"):
        pytest.importorskip(package, reason="the extras explore and test are not installed")
    from explore_browser import PROGRAMS, open_browser

    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        pytest.skip(f"needs {' and '.join(missing)} (Debian: chromium chromium-driver)")
    with open_browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium, request):
    """The browser; what a test saw last is kept in the folder $EXPLORE_PICTURES, to look at."""
    yield chromium
    if folder := os.environ.get("EXPLORE_PICTURES"):
        from explore_browser import picture

        picture(chromium, Path(folder) / f"{request.node.name}.png")
