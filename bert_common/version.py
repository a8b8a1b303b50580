"""The release of this project: what `--version` says, what setup.py declares."""

VERSION = "0.1.0"
