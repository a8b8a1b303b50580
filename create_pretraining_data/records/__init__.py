"""Writes and reads pre-training records; start reading at record_format."""
