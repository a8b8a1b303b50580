"""Checks a machine's devices for correctness and speed; open __main__ first."""
