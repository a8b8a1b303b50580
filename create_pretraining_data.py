"""Launches create_pretraining_data, which turns text into pre-training records."""

import sys

from run_scripts.programs import create_pretraining_data

if __name__ == "__main__":
    sys.exit(create_pretraining_data())
