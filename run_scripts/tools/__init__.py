"""Smaller programs, which are run by `python -m`; open fill_masks first."""
