"""What the programs of downstream tasks share; program is the file to open first."""
