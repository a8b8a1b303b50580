"""A tokenizer as a directory: its vocabulary file beside tokenizer_config.json."""

import json
import os
from pathlib import Path

from bert_common.errors import InputError
from bert_common.json_text import read_json
from tokenization.base import check_switches
from tokenization.korean import KoreanTokenizer
from tokenization.reference_api import FullTokenizer
from tokenization.sentencepiece import SentencePieceTokenizer
from tokenization.vocabulary import read_bytes

CONFIG_FILE = "tokenizer_config.json"

# kind -> the class, the name of its vocabulary file
KINDS = {
    "full": (FullTokenizer, "vocab.txt"),
    "korean": (KoreanTokenizer, "vocab.txt"),
    "sentencepiece": (SentencePieceTokenizer, "spiece.model"),
}

Tokenizer = FullTokenizer | KoreanTokenizer | SentencePieceTokenizer


def load_tokenizer(directory: str | os.PathLike) -> Tokenizer:
    """Reads a tokenizer that `save_tokenizer` wrote, or that a person put together.

    Args:
        directory: holds tokenizer_config.json, such as {"kind": "korean", "do_lower_case": true},
            beside vocab.txt (spiece.model for kind "sentencepiece"). A switch that is left out
            has the constructor's default.

    Raises:
        InputError: a file is missing or malformed, the kind or a switch is unknown, or a switch
            has a wrong value.
    """
    directory = Path(directory)
    path = directory / CONFIG_FILE
    config = _read_json_object(path)
    kind = config.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"{path}: kind must be one of {', '.join(KINDS)}. Received: {kind!r}")
    tokenizer_class, vocabulary_name = KINDS[kind]
    check_switches(config, tokenizer_class.switches, str(path))
    return tokenizer_class(directory / vocabulary_name, **config)


def save_tokenizer(tokenizer: Tokenizer, directory: str | os.PathLike) -> None:
    """Writes the vocabulary, byte for byte as it was read, with its tokenizer_config.json.

    Args:
        tokenizer: what to write.
        directory: made when it is missing; files of the same names are replaced, each at once.
    """
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    config = json.dumps(tokenizer.config(), indent=2, ensure_ascii=False) + "\n"
    _, vocabulary_name = KINDS[tokenizer.kind]
    _replace_file(directory / vocabulary_name, tokenizer.vocabulary_bytes)
    _replace_file(directory / CONFIG_FILE, config.encode("utf-8"))


def _read_json_object(path: Path) -> dict:
    config = read_json(read_bytes(path), str(path))
    if not isinstance(config, dict):
        raise InputError(f"File must hold a JSON object. Received: {path}: {config!r}")
    return config


def _replace_file(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    os.replace(temporary, path)  # a reader sees the old file or the new one, never half of one
