"""Launcher: texts in, the outputs of a model's layers out."""

import sys

from run_scripts.programs import extract_features

if __name__ == "__main__":
    sys.exit(extract_features())
