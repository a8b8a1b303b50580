"""Launcher: a model in, the same model with another vocabulary or more positions out."""

import sys

from run_scripts.programs import adapt_checkpoint

if __name__ == "__main__":
    sys.exit(adapt_checkpoint())
