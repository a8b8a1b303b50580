"""Launcher: a pre-trained model in, a fine-tuned text classifier out."""

import sys

from run_scripts.programs import run_classifier

if __name__ == "__main__":
    sys.exit(run_classifier())
