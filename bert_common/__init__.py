"""Helpers that every package may use: errors, files, locks, processes, progress."""
