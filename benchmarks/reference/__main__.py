"""Starts the reference run: python -m benchmarks.reference."""

import sys

from bert_common.startup import begin

if __name__ == "__main__":
    begin()
    from benchmarks.reference.program import main

    sys.exit(main())
