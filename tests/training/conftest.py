"""What tests of whole trainings share."""

import pytest

from tests.support.programs import DROPOUT, PretrainingJob


@pytest.fixture
def job(tmp_path):
    """A job with dropout; the order of its examples is shuffled, as always."""
    return PretrainingJob(tmp_path, **DROPOUT)
