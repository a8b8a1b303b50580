"""Writes curves, texts and images for TensorBoard; open reporter first."""
