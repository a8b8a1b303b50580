"""Reads the files that Hugging Face's transformers writes; open config first."""
