"""Adapts a model to a different vocabulary or more positions; open new_rows first."""
