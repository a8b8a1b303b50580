"""Measures speed and memory; open training first."""
