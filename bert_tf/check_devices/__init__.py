"""Checks a machine's devices: what works, how right, how fast; run by `python -m`."""
