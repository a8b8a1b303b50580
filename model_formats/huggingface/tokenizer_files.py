"""Writes a tokenizer so that `transformers` produces exactly the same ids.

A HuggingFaceTokenizer becomes BertTokenizer. Other tokenizers that Hugging Face's library can
express become a tokenizer.json, and the rest become Python files next to the vocabulary. All keep
our configuration in tokenizer_config.json, so that `load_tokenizer` can read the folder.
"""

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any

from bert_common.atomic_write import atomic_write
from bert_common.errors import InputError
from model_formats.huggingface.tokenizer_json import describe, describe_bert, is_expressible
from tokenization.base import TokenizerInterface
from tokenization.huggingface.folder import (
    ADDED_TOKENS_FILE,
    CONFIG_FILE,
    ROLES,
    SPECIAL_TOKENS_FILE,
    TOKENIZER_FILE,
)
from tokenization.loading import KINDS, SOURCE_KEY

# The transformers class that takes everything from tokenizer.json.
GENERIC_CLASS = "PreTrainedTokenizerFast"

# Kind -> the Python files next to the vocabulary, the first with the class, and the class's name.
REMOTE_CODE = {
    "korean": (("tokenization_korean.py", "korean_wordpiece.py"), "KoreanWordPieceTokenizer"),
    "sentencepiece": (("tokenization_sentencepiece.py",), "SentencePieceTokenizer"),
}


def write_tokenizer(
    tokenizer: TokenizerInterface, directory: str | os.PathLike[str], max_length: int
) -> str:
    """Writes the files of a tokenizer of any kind into a Hugging Face folder.

    A text that spells a special token, such as "[MASK]", yields that token in `transformers`, but
    punctuation marks and words here; `split_special_tokens=True` makes both the same.

    Args:
        directory: created if missing. Each file is replaced atomically, and files of an earlier
            tokenizer are removed.
        max_length: the longest input with special tokens, which is the model's number of positions.

    Returns:
        A sentence that tells the user which form was chosen.

    Raises:
        InputError: the vocabulary lacks [UNK], [CLS], [SEP] or [MASK].
    """
    special = _special_tokens(tokenizer)
    if tokenizer.kind == "huggingface":
        config, files, chosen = _as_bert(tokenizer, special)
    elif needs_own_code(tokenizer):
        config, files, chosen = _as_python(tokenizer)
    else:
        config, files, chosen = _as_tokenizer_json(tokenizer, special)
    config = {
        **config,
        "model_max_length": max_length,
        **special,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
        SOURCE_KEY: tokenizer.config(),
    }
    files |= {
        KINDS[tokenizer.kind][1]: tokenizer.vocabulary_bytes,
        SPECIAL_TOKENS_FILE: _json({role: token for role, token in special.items() if token}),
        CONFIG_FILE: _json(config),
    }
    _write(files, Path(directory))
    return chosen


def needs_own_code(tokenizer: TokenizerInterface) -> bool:
    """Returns True if a tokenizer needs Python files, as transformers cannot express it."""
    return tokenizer.kind != "huggingface" and not is_expressible(tokenizer)


def trust_argument(tokenizer: TokenizerInterface | None) -> str:
    """Returns the argument of loading calls, after the path, that allows such files to run."""
    return ", trust_remote_code=True" if tokenizer and needs_own_code(tokenizer) else ""


def _as_bert(tokenizer, special):
    """Returns the configuration, the files and the sentence for a HuggingFaceTokenizer."""
    options = tokenizer.options
    # BertTokenizer has no arguments for these options, and always uses these values.
    usual = (options.max_input_chars_per_word, options.continuing_subword_prefix) == (100, "##")
    name = "BertTokenizer" if usual else GENERIC_CLASS
    config = {
        "tokenizer_class": name,
        "do_lower_case": options.do_lower_case,
        "strip_accents": options.strip_accents,
        "tokenize_chinese_chars": options.tokenize_chinese_chars,
    }
    parts = describe_bert(options, tokenizer.vocab)
    files = {TOKENIZER_FILE: _json(_whole(tokenizer, special, parts), indent=None)}
    return config, files, f"the tokenizer is a {name} of transformers"


def _as_tokenizer_json(tokenizer, special):
    """Returns the same as `_as_bert` for a tokenizer that a tokenizer.json can express."""
    parts = describe(tokenizer)
    files = {TOKENIZER_FILE: _json(_whole(tokenizer, special, parts), indent=None)}
    chosen = f"the tokenizer is a {TOKENIZER_FILE} ({GENERIC_CLASS}) that gives the same ids"
    return {"tokenizer_class": GENERIC_CLASS}, files, chosen


def _as_python(tokenizer):
    """Returns the same as `_as_bert` for a tokenizer that is exported as Python code."""
    names, class_name = REMOTE_CODE[tokenizer.kind]
    module = names[0].removesuffix(".py")
    config = {
        "tokenizer_class": class_name,
        "auto_map": {"AutoTokenizer": [f"{module}.{class_name}", None]},
    }
    code = resources.files("model_formats.huggingface.exported")
    files = {name: (code / name).read_bytes() for name in names}
    chosen = (
        f"the tokenizer is Python code ({', '.join(names)}), as no {TOKENIZER_FILE} can express "
        "it: AutoTokenizer.from_pretrained needs trust_remote_code=True"
    )
    return config, files, chosen


def _special_tokens(tokenizer: TokenizerInterface) -> dict[str, str | None]:
    """Maps the role of each special token to the token; None for a missing [PAD]."""
    ids = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.cls_id, tokenizer.sep_id)
    ids = (*ids, tokenizer.mask_id)
    special = {
        role: None if index is None else tokenizer.inv_vocab[index]
        for role, index in zip(ROLES, ids, strict=True)
    }
    missing = [role for role in ROLES[1:] if special[role] is None]
    if missing:
        raise InputError(
            "a vocabulary must hold [UNK], [CLS], [SEP] and [MASK] for Hugging Face. Received: no "
            + ", ".join(missing)
        )
    return special


def _whole(
    tokenizer: TokenizerInterface, special: dict[str, str | None], parts: dict[str, Any]
) -> dict[str, Any]:
    """Returns a complete tokenizer.json with the given parts."""
    ids = {token: tokenizer.vocab[token] for token in special.values() if token}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    added = [
        {"id": index, "content": token, **flags, "special": True}
        for token, index in sorted(ids.items(), key=lambda item: item[1])
    ]

    def piece(kind, name, type_id):
        return {kind: {"id": name, "type_id": type_id}}

    cls, sep = special["cls_token"], special["sep_token"]
    assert cls is not None and sep is not None  # as `_special_tokens` requires
    single = [
        piece("SpecialToken", cls, 0), piece("Sequence", "A", 0), piece("SpecialToken", sep, 0)
    ]  # fmt: skip
    pair = [*single, piece("Sequence", "B", 1), piece("SpecialToken", sep, 1)]
    template = {
        token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (cls, sep)
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        **{name: parts[name] for name in ("normalizer", "pre_tokenizer")},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": single,
            "pair": pair,
            "special_tokens": template,
        },
        **{name: parts[name] for name in ("decoder", "model")},
    }


def _json(content: dict[str, Any], indent: int | None = 2) -> bytes:
    return (json.dumps(content, indent=indent, ensure_ascii=False) + "\n").encode("utf-8")


def _write(files: dict[str, bytes], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    names = {name for remote, _ in REMOTE_CODE.values() for name in remote}
    names |= {name for _, name in KINDS.values()}
    for name in names | {TOKENIZER_FILE, ADDED_TOKENS_FILE}:
        if name not in files:
            (directory / name).unlink(missing_ok=True)
    for name, content in files.items():
        with atomic_write(directory / name) as file:
            file.write(content)
