"""Extractive question answering; open task first."""
