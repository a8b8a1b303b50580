"""Multiple-choice questions; task is the file to open first."""
