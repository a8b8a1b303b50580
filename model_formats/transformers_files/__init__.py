"""Reads the files that Hugging Face's transformers writes; start with config."""
