"""Programs with which the authors measure the project; open common first."""
