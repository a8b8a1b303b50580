"""Launcher: a pre-trained model in, one that finds named entities out."""

import sys

from run_scripts.ner import main

if __name__ == "__main__":
    sys.exit(main())
