"""How fast, and in how much memory; open training first."""
