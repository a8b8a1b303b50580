"""The flags of the programs and their parser; parser is the file to open first."""
