"""The training steps of the contenders of speed/training.py; open project first."""
