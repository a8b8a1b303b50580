"""Downstream tasks for a pre-trained encoder; open downstream_task first."""
