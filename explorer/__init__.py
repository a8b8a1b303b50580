"""Serves a local page that shows a model from inside; open application first, then answers."""
