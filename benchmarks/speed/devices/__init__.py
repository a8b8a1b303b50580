"""Measures how fast this machine's devices train; open __main__ first."""
