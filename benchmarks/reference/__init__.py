"""Trains the reference model and records the cost of each run; open stages first."""
