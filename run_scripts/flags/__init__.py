"""The flags of the programs; open declaration first, then parser."""
