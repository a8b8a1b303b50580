"""Checks that a machine's devices compute what they should; open __main__ first."""
