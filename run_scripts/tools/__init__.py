"""Holds smaller programs, which `python -m` runs; open fill_masks first."""
