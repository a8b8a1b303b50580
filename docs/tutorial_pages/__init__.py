"""Generates docs/tutorials from the texts in docs/tutorials/texts; open texts first."""
