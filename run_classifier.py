"""Launcher: a pre-trained model in, one that tells texts apart out."""

import sys

from run_scripts.programs import run_classifier

if __name__ == "__main__":
    sys.exit(run_classifier())
