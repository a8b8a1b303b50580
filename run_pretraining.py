"""Launches run_pretraining, which trains a BERT, ALBERT or ELECTRA on pre-training records."""

import sys

from run_scripts.programs import run_pretraining

if __name__ == "__main__":
    sys.exit(run_pretraining())
