"""Launcher: pre-training records in, a trained BERT or ALBERT out."""

import sys

from run_scripts.programs import run_pretraining

if __name__ == "__main__":
    sys.exit(run_pretraining())
