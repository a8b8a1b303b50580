"""Implements tokenizers as TensorFlow operations; open graph first."""
