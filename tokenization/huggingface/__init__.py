"""Reads Hugging Face's WordPiece tokenizer from its folders; open tokenizer first."""
