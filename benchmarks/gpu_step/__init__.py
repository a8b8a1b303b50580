"""The training step as XLA programs that run under JAX alone; open __main__ first."""
