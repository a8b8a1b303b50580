"""From text to a vocabulary; open learn first."""
