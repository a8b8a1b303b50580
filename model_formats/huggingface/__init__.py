"""Folders that Hugging Face's transformers reads and writes; open names first."""
