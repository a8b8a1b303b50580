"""Launcher: text in, a vocabulary of Korean morphemes out."""

import sys

from run_scripts.build_vocab import main

if __name__ == "__main__":
    sys.exit(main())
