"""Trains the reference model, recording the cost of each run; open stages first."""
