"""Writes and reads pre-training records; record_format is the file to open first."""
