"""Launcher: a pre-trained model in, one fine-tuned to answer questions about texts out."""

import sys

from run_scripts.programs import run_squad

if __name__ == "__main__":
    sys.exit(run_squad())
