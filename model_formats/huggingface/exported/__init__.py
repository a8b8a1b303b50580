"""Tokenizers in Python that an export copies beside its weights; open korean_wordpiece first."""
