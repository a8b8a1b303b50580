"""Benchmarks that the authors use to measure the project; open common first."""
