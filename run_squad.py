"""Launcher: a pre-trained model in, one that answers questions about texts out."""

import sys

from run_scripts.squad import main

if __name__ == "__main__":
    sys.exit(main())
