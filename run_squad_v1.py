"""Launcher: run_squad.py under google-research/albert's name for SQuAD 1.1."""

import sys

from run_scripts.squad import main

if __name__ == "__main__":
    sys.exit(main())
