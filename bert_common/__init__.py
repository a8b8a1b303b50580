"""Helpers that every package may use, such as files and processes; open errors first."""

# The release of this project: what `--version` says, what setup.py declares.
VERSION = "0.1.0"
