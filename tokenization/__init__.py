"""Provides tokenizers, which cut text into the tokens of a vocabulary; open base first."""

from bert_common.errors import InputError
from tokenization import reference_api
from tokenization.characters import is_control as _is_control  # noqa: F401
from tokenization.characters import is_punctuation as _is_punctuation  # noqa: F401
from tokenization.characters import is_whitespace as _is_whitespace  # noqa: F401
from tokenization.huggingface.tokenizer import HuggingFaceTokenizer
from tokenization.korean import KoreanTokenizer
from tokenization.loading import load_tokenizer, save_tokenizer
from tokenization.reference_api import *  # noqa: F403
from tokenization.sentencepiece import SentencePieceTokenizer

__all__ = [
    "HuggingFaceTokenizer",
    "InputError",
    "KoreanTokenizer",
    "SentencePieceTokenizer",
    "load_tokenizer",
    "save_tokenizer",
    *reference_api.__all__,
]
