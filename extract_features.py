"""Launcher: texts in, what the layers of a model make of them out."""

import sys

from run_scripts.extract_features import main

if __name__ == "__main__":
    sys.exit(main())
