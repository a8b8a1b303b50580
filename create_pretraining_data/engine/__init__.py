"""Runs the making of records over many files and processes; passes is the file to open first."""
