"""Launcher: a pre-trained model in, one whose vectors of texts can be compared and searched out."""

import sys

from run_scripts.programs import run_similarity

if __name__ == "__main__":
    sys.exit(run_similarity())
