"""Starts `run_scripts.plan` as run_scripts.sizes, the former name of its tables of models."""

import sys

from run_scripts.plan import main

if __name__ == "__main__":
    sys.exit(main())
