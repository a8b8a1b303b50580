"""Turns a chunk of text into training instances; make_instances is the file to open first."""
