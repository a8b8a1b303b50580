"""Launches export_model, which converts a model to a different format."""

import sys

from run_scripts.programs import export_model

if __name__ == "__main__":
    sys.exit(export_model())
