"""Turns a chunk of text into training instances; start reading at make_instances."""
