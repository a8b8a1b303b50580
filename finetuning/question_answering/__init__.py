"""Extractive question answering; task is the file to open first."""
