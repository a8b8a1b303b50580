"""Numbers as the answers give them."""


def rounded(value, digits=6):
    """A number with few digits: more are noise, and make the answer long."""
    return round(float(value), digits)
