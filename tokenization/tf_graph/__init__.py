"""Tokenizers as TensorFlow operations; graph is the file to open first."""
