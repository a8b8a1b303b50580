"""How vocabularies compare; open bits first."""
