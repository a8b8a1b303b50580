"""Starts `run_scripts.plan` under the name that its tables of models had: run_scripts.sizes."""

import sys

from run_scripts.plan import main

if __name__ == "__main__":
    sys.exit(main())
