"""Helpers that every package may use, such as files and processes; open errors first."""
