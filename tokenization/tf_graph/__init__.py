"""Tokenizers as TensorFlow operations; open graph first."""
