"""Starts the reference run: python -m benchmarks.reference."""

import sys

from benchmarks.reference.program import main

sys.exit(main())
