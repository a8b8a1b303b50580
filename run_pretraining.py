"""Launcher: pre-training records in, a trained BERT or ALBERT out."""

import sys

from run_scripts.pretrain import main

if __name__ == "__main__":
    sys.exit(main())
