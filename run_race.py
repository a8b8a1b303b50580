"""Launches run_race, which fine-tunes a pre-trained model on multiple-choice questions."""

import sys

from run_scripts.programs import run_race

if __name__ == "__main__":
    sys.exit(run_race())
