"""Tokenizers that turn text into pieces of a vocabulary."""

from tokenization.errors import InputError
from tokenization.korean import KoreanTokenizer
from tokenization.loading import load_tokenizer, save_tokenizer
from tokenization.sentencepiece import SentencePieceTokenizer
from tokenization.wordpiece import FullTokenizer

__all__ = [
    "FullTokenizer",
    "InputError",
    "KoreanTokenizer",
    "SentencePieceTokenizer",
    "load_tokenizer",
    "save_tokenizer",
]
