"""Creates records from many files in many processes; start reading at passes."""
