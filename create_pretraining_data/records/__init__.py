"""Pre-training records, written and read; record_format is the file to open first."""
