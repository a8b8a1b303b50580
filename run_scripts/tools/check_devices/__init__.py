"""Checks a machine's devices for correctness and speed; run by `python -m`."""
