"""Vectors of texts whose cosines say how alike the texts are; open task first."""
