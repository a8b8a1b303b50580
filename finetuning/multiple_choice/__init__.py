"""Multiple-choice questions; open task first."""
