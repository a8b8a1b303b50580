"""Writes folders for Hugging Face's transformers; start with export."""
