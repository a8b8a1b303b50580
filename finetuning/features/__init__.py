"""Features: the vectors of an encoder's layers for texts; open extraction first."""
