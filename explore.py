"""Launches explore, which shows a model from inside on a page that this machine serves."""

import sys

from run_scripts.programs import explore

if __name__ == "__main__":
    sys.exit(explore())
