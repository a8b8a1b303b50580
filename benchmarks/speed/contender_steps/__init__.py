"""Defines the training steps of the contenders in speed/training.py; open project first."""
