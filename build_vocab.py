"""Launcher: text in, a vocabulary of Korean morphemes out."""

import sys

from run_scripts.programs import build_vocab

if __name__ == "__main__":
    sys.exit(build_vocab())
