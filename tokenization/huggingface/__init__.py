"""Hugging Face's tokenizers as one of ours, and the folders they are kept in; open tokenizer first."""
