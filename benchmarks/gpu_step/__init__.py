"""Exports the training step as XLA programs and runs them with JAX; open __main__ first."""
