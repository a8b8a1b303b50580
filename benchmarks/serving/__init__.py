"""How fast exported models answer, and how well; open requests first."""
