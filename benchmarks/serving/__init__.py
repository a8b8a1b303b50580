"""Measures how fast and how well exported models answer; open requests first."""
