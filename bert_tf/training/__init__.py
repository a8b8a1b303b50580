"""The training loop and all that it needs; loop is the file to open first, then step."""
