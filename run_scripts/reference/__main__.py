"""Starts the reference run: python -m run_scripts.reference."""

import sys

from run_scripts.reference.program import main

sys.exit(main())
