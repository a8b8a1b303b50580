"""Generates docs/tutorials from the texts in docs/tutorials/texts; start reading at texts."""
