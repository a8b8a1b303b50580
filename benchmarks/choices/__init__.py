"""Measures which choices of a pre-training pay; open questions first, then pieces."""
