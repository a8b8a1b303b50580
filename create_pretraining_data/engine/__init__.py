"""Creates records from many files in many processes; passes is the file to open first."""
