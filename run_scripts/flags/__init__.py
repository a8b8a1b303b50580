"""The flags of the programs; declaration is the file to open first, then parser."""
