"""Handles events that can end training early, such as signals; open signals first."""
