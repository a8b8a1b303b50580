"""Measures how well models learn, depending on their training; open ladder first."""
