"""Loads tokenizers from folders with tokenizer_config.json; saves them there.

This project's tokenizer_config.json names the tokenizer's kind. A Hugging Face folder names none;
`huggingface/folder.py` reads it. If this project exported it, `SOURCE_KEY` holds our configuration.
"""

import json
import os
from pathlib import Path
from typing import Any

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from tokenization.base import TokenizerInterface
from tokenization.huggingface.folder import (
    check_added_tokens,
    exported_vocabulary,
    is_hugging_face_folder,
    load_hugging_face,
)
from tokenization.huggingface.tokenizer import HuggingFaceTokenizer
from tokenization.korean import KoreanTokenizer
from tokenization.options import check_options
from tokenization.reference_api import FullTokenizer
from tokenization.sentencepiece import SentencePieceTokenizer

CONFIG_FILE = "tokenizer_config.json"

# In a Hugging Face tokenizer_config.json, this key holds the contents of this project's.
SOURCE_KEY = "source_tokenizer"

# kind -> its class, the name of its vocabulary file
KINDS: dict[str, tuple[type[TokenizerInterface], str]] = {
    "full": (FullTokenizer, "vocab.txt"),
    "korean": (KoreanTokenizer, "vocab.txt"),
    "huggingface": (HuggingFaceTokenizer, "vocab.txt"),
    "sentencepiece": (SentencePieceTokenizer, "spiece.model"),
}

Tokenizer = FullTokenizer | KoreanTokenizer | HuggingFaceTokenizer | SentencePieceTokenizer


def load_tokenizer(directory: str | os.PathLike[str]) -> Tokenizer:
    """Loads a tokenizer that `save_tokenizer` wrote, or whose files were put there by hand.

    Args:
        directory: holds tokenizer_config.json, such as {"kind": "korean", "do_lower_case": true},
            and vocab.txt (spiece.model for kind "sentencepiece"); omitted options have the
            constructor's defaults. Or it is a Hugging Face folder that `load_hugging_face` reads.

    Raises:
        InputError: a file is missing or malformed, the kind or an option is unknown, or an option
            has an invalid value; a Hugging Face folder has a tokenizer that is not supported.
    """
    directory = Path(directory).expanduser()
    path = directory / CONFIG_FILE
    if not path.exists() and is_hugging_face_folder(directory, None):
        return load_hugging_face(directory, None)
    config = read_json(read_bytes(path), str(path))
    if not isinstance(config, dict):
        raise InputError(f"file must hold a JSON object. Received: {path}: {config!r}")
    if SOURCE_KEY in config:
        return _load_exported(directory, config)
    if is_hugging_face_folder(directory, config):
        return load_hugging_face(directory, config)
    tokenizer_class, vocabulary_name, options = _read_kind(config, str(path))
    return tokenizer_class(directory / vocabulary_name, **options)


def open_named(
    *,
    tokenizer_dir: str | None = None,
    spm_model_file: str | None = None,
    vocab_file: str | None = None,
    tokenizer: str | None = None,
    do_lower_case: bool | None = None,
) -> Tokenizer:
    """Opens the tokenizer that the flags of these names describe.

    Args:
        tokenizer_dir, spm_model_file, vocab_file: one of them; if there are more, the first.
        tokenizer: the kind of a `vocab_file`, "korean" or "full"; None for "full".
        do_lower_case: whether a file's tokenizer lower-cases; None for the kind's default. A folder
            says so itself.
    """
    if tokenizer_dir:
        return load_tokenizer(tokenizer_dir)
    case: dict[str, Any] = {} if do_lower_case is None else {"do_lower_case": do_lower_case}
    if spm_model_file:
        return SentencePieceTokenizer(spm_model_file, **case)
    assert vocab_file is not None, "no tokenizer is named"
    if tokenizer == "korean":
        return KoreanTokenizer(vocab_file, **case)
    return FullTokenizer(vocab_file, **case)


def _load_exported(directory, config):
    """Loads the tokenizer from which this project exported a Hugging Face folder."""
    where, source = f"{directory / CONFIG_FILE}: {SOURCE_KEY}", config[SOURCE_KEY]
    if not isinstance(source, dict):
        raise InputError(f"{where} must be an object. Received: {source!r}")
    tokenizer_class, vocabulary_name, options = _read_kind(source, where)
    with exported_vocabulary(directory, vocabulary_name) as path:
        tokenizer = tokenizer_class(path, **options)
    check_added_tokens(directory, config, tokenizer.vocab)
    return tokenizer


def _read_kind(config, where):
    """Splits this project's configuration into the class, the vocabulary's name and the options."""
    options = dict(config)
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"{where}: kind must be one of {', '.join(KINDS)}. Received: {kind!r}")
    tokenizer_class, vocabulary_name = KINDS[kind]
    check_options(tokenizer_class.options_type, options, where)
    return tokenizer_class, vocabulary_name, options


def save_tokenizer(tokenizer: Tokenizer, directory: str | os.PathLike[str]) -> None:
    """Writes the vocabulary, byte for byte as it was read, and a tokenizer_config.json.

    Args:
        tokenizer: the tokenizer to save.
        directory: created if missing; each file is replaced atomically.

    Raises:
        OSError: a file cannot be written.
    """
    directory = Path(directory).expanduser()
    directory.mkdir(parents=True, exist_ok=True)
    config = json.dumps(tokenizer.config(), indent=2, ensure_ascii=False) + "\n"
    _, vocabulary_name = KINDS[tokenizer.kind]
    contents = {vocabulary_name: tokenizer.vocabulary_bytes, CONFIG_FILE: config.encode("utf-8")}
    for name, content in contents.items():
        with atomic_write(directory / name) as file:
            file.write(content)
