"""Provides helpers for files, processes and the like to every package; open errors first."""

# This project's release, which `--version` prints and setup.py declares.
VERSION = "0.1.0"
