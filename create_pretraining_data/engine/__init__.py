"""Creates records from many files in many processes; open passes first."""
