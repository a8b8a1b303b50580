"""Launcher: a pre-trained model in, one that tells texts apart out."""

import sys

from run_scripts.classifier import main

if __name__ == "__main__":
    sys.exit(main())
