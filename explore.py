"""Launcher: a model in, a page on this machine that shows it from inside."""

import sys

from run_scripts.programs import explore

if __name__ == "__main__":
    sys.exit(explore())
