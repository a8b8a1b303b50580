"""Holds the arithmetic of the plan program; open corpus first."""
