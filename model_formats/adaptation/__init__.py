"""Carries a model over to another vocabulary or more positions; open new_rows first."""
