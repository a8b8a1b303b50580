"""Launches build_vocab, which learns a vocabulary of Korean morphemes from text."""

import sys

from run_scripts.programs import build_vocab

if __name__ == "__main__":
    sys.exit(build_vocab())
