"""Holds the programs, which turn flags into calls of the library; open pretrain first."""

import sys

if sys.argv[:1] == ["-m"]:  # python -m run_scripts.NAME, whose imports come after this file
    from bert_common.startup import begin

    begin()
