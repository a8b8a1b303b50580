"""Learns a vocabulary from text; open learn first."""
