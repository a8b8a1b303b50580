"""Launches extract_features, which writes the outputs of a model's layers for texts."""

import sys

from run_scripts.programs import extract_features

if __name__ == "__main__":
    sys.exit(extract_features())
