"""Holds the programs that convert a model to a different form; open export_model first."""
