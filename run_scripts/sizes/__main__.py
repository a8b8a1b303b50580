"""Starts the program: python -m run_scripts.sizes."""

import sys

from run_scripts.sizes.program import main

sys.exit(main())
