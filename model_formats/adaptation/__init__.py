"""Adapts a model to a different vocabulary or more positions; start with new_rows."""
