"""Tokenizers, from text to the pieces of a vocabulary; base is the file to open first."""

from bert_common.errors import InputError
from tokenization import reference_api
from tokenization.korean import KoreanTokenizer
from tokenization.loading import load_tokenizer, save_tokenizer
from tokenization.reference_api import *  # noqa: F403
from tokenization.reference_api import _is_control, _is_punctuation, _is_whitespace  # noqa: F401
from tokenization.sentencepiece import SentencePieceTokenizer

__all__ = [
    "InputError",
    "KoreanTokenizer",
    "SentencePieceTokenizer",
    "load_tokenizer",
    "save_tokenizer",
    *reference_api.__all__,
]
