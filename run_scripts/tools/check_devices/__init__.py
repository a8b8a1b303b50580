"""Checks a machine's devices for correctness and speed; run by `python -m`."""

import sys

if sys.argv[:1] == ["-m"]:  # before the imports of the program itself
    from bert_common.startup import begin

    begin()
