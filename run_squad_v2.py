"""Launches run_squad under google-research/albert's name for SQuAD 2.0."""

import sys

from run_scripts.programs import run_squad

if __name__ == "__main__":
    sys.exit(run_squad([sys.argv[0], "--version_2_with_negative", *sys.argv[1:]]))
