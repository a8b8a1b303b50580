"""Generates the pages of docs/ that are made from the code; open pages first."""
