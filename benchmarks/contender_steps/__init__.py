"""The training steps of the contenders of benchmarks/training.py; open project first."""
