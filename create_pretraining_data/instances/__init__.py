"""Turns a chunk of text into training instances; open make_instances first."""
