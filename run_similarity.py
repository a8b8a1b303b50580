"""Launches run_similarity, which trains a model's text vectors for comparison and search."""

import sys

from run_scripts.programs import run_similarity

if __name__ == "__main__":
    sys.exit(run_similarity())
