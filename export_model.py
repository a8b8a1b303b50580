"""Launcher: a model in, the same model in another format out."""

import sys

from run_scripts.programs import export_model

if __name__ == "__main__":
    sys.exit(export_model())
