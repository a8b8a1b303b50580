"""The arithmetic behind the program plan; open corpus first."""
