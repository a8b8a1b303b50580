"""Writes folders for Hugging Face's transformers; open export first."""
