"""Launcher: text in, pre-training records out."""

import sys

from run_scripts.create_data import main

if __name__ == "__main__":
    sys.exit(main())
