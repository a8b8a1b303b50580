"""Makes the notebooks and pages of docs/tutorials from the texts beside them; open texts first."""
