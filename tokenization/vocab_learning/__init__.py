"""From text to a vocabulary; learn is the file to open first."""
