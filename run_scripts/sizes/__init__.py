"""The program that prints what models of any size need; open program first, then tables."""
