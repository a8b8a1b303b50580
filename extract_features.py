"""Launcher: texts in, what the layers of a model make of them out."""

import sys

from run_scripts.programs import extract_features

if __name__ == "__main__":
    sys.exit(extract_features())
