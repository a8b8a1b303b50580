"""Handles what can end training early, such as signals or full memory; open signals first."""
