"""Launcher: a pre-trained model in, one fine-tuned to find named entities out."""

import sys

from run_scripts.programs import run_ner

if __name__ == "__main__":
    sys.exit(run_ner())
