"""Launches run_classifier, which fine-tunes a pre-trained model to classify texts."""

import sys

from run_scripts.programs import run_classifier

if __name__ == "__main__":
    sys.exit(run_classifier())
