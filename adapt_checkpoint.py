"""Launches adapt_checkpoint, which gives a model a different vocabulary or more positions."""

import sys

from run_scripts.programs import adapt_checkpoint

if __name__ == "__main__":
    sys.exit(adapt_checkpoint())
