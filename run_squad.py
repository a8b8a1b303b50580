"""Launches run_squad, which fine-tunes a pre-trained model to answer questions about texts."""

import sys

from run_scripts.programs import run_squad

if __name__ == "__main__":
    sys.exit(run_squad())
