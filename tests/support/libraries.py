"""Marks of tests that need libraries beyond the quick run's."""

import importlib.util

import pytest


def needs(*libraries, extra):
    """Skips a test where one of the libraries is not installed, and names the extra that has it."""
    absent = [name for name in libraries if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(absent), reason=f"needs {', '.join(absent)} (the extra {extra})")


needs_torch = needs("torch", "transformers", extra="bench")
