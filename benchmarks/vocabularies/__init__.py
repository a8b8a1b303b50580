"""Compares vocabularies; open bits first."""
