"""Hugging Face's WordPiece tokenizer, read from its folders; open tokenizer first."""
