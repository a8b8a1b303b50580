"""Turns text into pre-training records; open engine/passes first."""
