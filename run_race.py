"""Launcher: a pre-trained model in, one that chooses between options out."""

import sys

from run_scripts.race import main

if __name__ == "__main__":
    sys.exit(main())
