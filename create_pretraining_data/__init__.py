"""Turns text into pre-training records; start reading at engine/passes."""
