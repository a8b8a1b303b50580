"""Writes and reads pre-training records; open record_format first."""
