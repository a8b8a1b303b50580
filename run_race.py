"""Launcher: a pre-trained model in, one fine-tuned to answer multiple-choice questions out."""

import sys

from run_scripts.programs import run_race

if __name__ == "__main__":
    sys.exit(run_race())
