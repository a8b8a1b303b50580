"""Trains the reference model, keeps what each run cost; open stages first."""
