"""Makes what is in docs/tutorials from the texts beside it; open texts first."""
