"""Launcher: run_squad.py under google-research/albert's name for SQuAD 2.0."""

import sys

from run_scripts.squad import main

if __name__ == "__main__":
    sys.exit(main([sys.argv[0], "--version_2_with_negative", *sys.argv[1:]]))
