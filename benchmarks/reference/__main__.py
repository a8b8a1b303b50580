"""Starts the reference run: python -m benchmarks.reference."""

from benchmarks.common import launch
from benchmarks.reference import program

if __name__ == "__main__":
    launch(program.main, program.__doc__, program.FLAGS)
