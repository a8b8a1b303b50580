"""Holds what the programs of downstream tasks share; open program first."""
