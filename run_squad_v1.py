"""Launches run_squad under google-research/albert's name for SQuAD 1.1."""

import sys

from run_scripts.programs import run_squad

if __name__ == "__main__":
    sys.exit(run_squad())
