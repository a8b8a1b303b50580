"""Downstream tasks for a pre-trained encoder; downstream_task is the file to open first."""
