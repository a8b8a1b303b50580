"""Turns text into pre-training records; engine/passes is the file to open first."""
