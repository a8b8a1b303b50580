"""Launches run_ner, which fine-tunes a pre-trained model to find named entities."""

import sys

from run_scripts.programs import run_ner

if __name__ == "__main__":
    sys.exit(run_ner())
