"""Numbers as the answers give them."""

from typing import SupportsFloat


def rounded(value: SupportsFloat, digits: int = 6) -> float:
    """A number with few digits: more are noise, and make the answer long."""
    return round(float(value), digits)
