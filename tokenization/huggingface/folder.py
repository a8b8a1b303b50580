"""Reads the tokenizer of a Hugging Face folder: vocab.txt, tokenizer.json or spiece.model.

`transformers` before version 5 writes vocab.txt (or spiece.model) and tokenizer.json, version 5
only tokenizer.json. A tokenizer that this project cannot reproduce raises an `InputError`.
"""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from bert_common.transformers_keys import is_of_transformers
from tokenization.huggingface.tokenizer import HuggingFaceTokenizer
from tokenization.options import HuggingFaceTokenizerOptions, check_options
from tokenization.sentencepiece import SentencePieceTokenizer
from tokenization.vocabulary import SPECIAL_TOKENS

CONFIG_FILE, TOKENIZER_FILE = "tokenizer_config.json", "tokenizer.json"
VOCABULARY_FILE, SENTENCEPIECE_FILE = "vocab.txt", "spiece.model"
# Found only in folders of `transformers` 4 and earlier.
SPECIAL_TOKENS_FILE, ADDED_TOKENS_FILE = "special_tokens_map.json", "added_tokens.json"

WORDPIECE_CLASSES = ("BertTokenizer", "ElectraTokenizer")
SENTENCEPIECE_CLASSES = ("AlbertTokenizer",)
# Classes that take everything from tokenizer.json.
GENERIC_CLASSES = ("PreTrainedTokenizer", "TokenizersBackend")

ROLES = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")

# BertTokenizer's defaults for options that tokenizer_config.json leaves out.
DEFAULTS = {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True}

# Option of BertTokenizer -> its name in the BertNormalizer of tokenizer.json.
NORMALIZER_NAMES = {
    "do_lower_case": "lowercase",
    "strip_accents": "strip_accents",
    "tokenize_chinese_chars": "handle_chinese_chars",
}


@contextlib.contextmanager
def exported_vocabulary(directory: Path, name: str) -> Iterator[Path]:
    """Yields the path of the vocabulary file of a tokenizer that this project exported.

    After `save_pretrained` of `transformers`, which leaves vocab.txt out, this is a temporary file
    with the tokens of tokenizer.json.
    """
    saved = name == VOCABULARY_FILE and (directory / TOKENIZER_FILE).exists()
    if (directory / name).exists() or not saved:
        yield directory / name
        return
    saved_file = directory / TOKENIZER_FILE
    tokens = _tokens(_object(_read_object(saved_file).get("model")), saved_file)
    with _as_file(tokens) as path:
        yield path


@contextlib.contextmanager
def _as_file(tokens):
    """Yields a temporary file with tokens, because tokenizers read their vocabulary from a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / VOCABULARY_FILE
        path.write_text("".join(token + "\n" for token in tokens), "utf-8", newline="")
        yield path


def is_hugging_face_folder(directory: Path, config: dict[str, Any] | None) -> bool:
    """Returns True if `transformers`, not this project, wrote a folder's tokenizer files.

    `config` is the contents of its tokenizer_config.json, or None if there is none.
    """
    if config is not None:
        return "kind" not in config and (
            "tokenizer_class" in config
            or any((directory / name).exists() for name in (TOKENIZER_FILE, SPECIAL_TOKENS_FILE))
            or is_of_transformers(_read_optional(directory / "config.json"))
        )
    return (directory / TOKENIZER_FILE).exists() or (
        any((directory / name).exists() for name in (VOCABULARY_FILE, SENTENCEPIECE_FILE))
        and is_of_transformers(_read_optional(directory / "config.json"))
    )


def load_hugging_face(
    directory: Path, config: dict[str, Any] | None
) -> HuggingFaceTokenizer | SentencePieceTokenizer:
    """Loads the tokenizer of a Hugging Face folder.

    Args:
        directory: holds vocab.txt or a WordPiece tokenizer.json, or ALBERT's spiece.model.
        config: the contents of its tokenizer_config.json; None for BertTokenizer's defaults.

    Raises:
        InputError: a file is missing or malformed, two of them contradict each other, or the
            tokenizer is one that this project cannot reproduce.
    """
    config = config or {}
    class_name = config.get("tokenizer_class") or ""
    if not isinstance(class_name, str):
        raise InputError(
            f"{directory / CONFIG_FILE}: tokenizer_class must be a string. Received: {class_name!r}"
        )
    class_name = class_name.removesuffix("Fast")
    supported = (*WORDPIECE_CLASSES, *SENTENCEPIECE_CLASSES, *GENERIC_CLASSES)
    if class_name not in ("", *supported):
        raise InputError(
            f"{directory / CONFIG_FILE}: tokenizer_class must be one of {', '.join(supported)}, or "
            f"one of these with Fast. Received: {config['tokenizer_class']}"
        )
    if class_name in SENTENCEPIECE_CLASSES or (
        class_name == "" and (directory / SENTENCEPIECE_FILE).exists()
    ):
        return _load_albert(directory, config)
    return _load_wordpiece(directory, config, class_name)


def _load_albert(directory, config):
    if not (directory / SENTENCEPIECE_FILE).exists():
        raise InputError(
            f"an ALBERT tokenizer must be {SENTENCEPIECE_FILE}: what {TOKENIZER_FILE} makes of it "
            f"cannot be read exactly. Received: {directory} without it"
        )
    # The first two set the rest of preprocessing; this project supports only these values.
    choices = {"keep_accents": (False,), "remove_space": (True,), "do_lower_case": (True, False)}
    for name, values in choices.items():
        value = config.get(name, values[0])
        if not any(value is choice for choice in values):
            raise InputError(
                f"{directory / CONFIG_FILE}: {name} must be "
                f"{' or '.join(str(choice).lower() for choice in values)} for an ALBERT "
                f"tokenizer. Received: {value!r}"
            )
    lower = config.get("do_lower_case", True)
    tokenizer = SentencePieceTokenizer(
        directory / SENTENCEPIECE_FILE, do_lower_case=lower, variant="huggingface"
    )
    check_added_tokens(directory, config, tokenizer.vocab)
    return tokenizer


def _load_wordpiece(directory, config, class_name):
    described = None
    if (directory / TOKENIZER_FILE).exists():
        described = _read_object(directory / TOKENIZER_FILE)
    if class_name in GENERIC_CLASSES and described is None:
        raise InputError(
            f"a folder whose tokenizer_class is {config['tokenizer_class']} must hold "
            f"{TOKENIZER_FILE}. Received: {directory} without it"
        )
    options: dict[str, Any] = {}
    tokens = None
    if described is not None:
        options, tokens = _read_tokenizer_json(described, directory / TOKENIZER_FILE)
    if described is None or (
        class_name not in GENERIC_CLASSES and (directory / CONFIG_FILE).exists()
    ):
        from_config = _read_options(config, directory / CONFIG_FILE)
        _check_agreement(options, from_config, directory)
        options = from_config
    if (directory / VOCABULARY_FILE).exists():
        lines = _read_vocabulary(directory / VOCABULARY_FILE)
        if tokens is not None and {token: i for i, token in enumerate(lines)} != {
            token: i for i, token in enumerate(tokens)
        }:
            raise InputError(
                f"{VOCABULARY_FILE} and {TOKENIZER_FILE} must hold the same vocabulary. Received: "
                f"{directory} with {len(lines)} and {len(tokens)} tokens that differ"
            )
        tokens = lines
    elif tokens is None:
        raise InputError(
            f"a Hugging Face folder must hold {VOCABULARY_FILE}, {TOKENIZER_FILE} or "
            f"{SENTENCEPIECE_FILE}. Received: {directory} with none"
        )
    _check_special_tokens(directory, config, tokens)
    if (directory / VOCABULARY_FILE).exists():
        return HuggingFaceTokenizer(directory / VOCABULARY_FILE, **options)
    with _as_file(tokens) as path:
        return HuggingFaceTokenizer(path, **options)


def _read_options(config: dict[str, Any], path: Path) -> dict[str, Any]:
    """Returns the options that tokenizer_config.json gives BertTokenizer."""
    for name, wanted in (("do_basic_tokenize", True), ("never_split", None)):
        if (config.get(name, wanted) or None) != (wanted or None):
            # The fast tokenizer of transformers ignores these options, the slow one does not.
            raise InputError(
                f"{path}: {name} must be {json.dumps(wanted)}. Received: "
                f"{json.dumps(config[name], ensure_ascii=False)}"
            )
    options = {name: config.get(name, default) for name, default in DEFAULTS.items()}
    if options["strip_accents"] is None:
        options["strip_accents"] = options["do_lower_case"]
    check_options(HuggingFaceTokenizerOptions, options, str(path))
    return options


def _check_agreement(from_json, from_config, directory):
    """Raises InputError if the files differ, as `transformers` versions follow one or the other."""
    implied = vars(HuggingFaceTokenizerOptions(**from_config))
    for name, value in from_json.items():
        if value != implied[name]:
            raise InputError(
                f"{CONFIG_FILE} and {TOKENIZER_FILE} must agree, as one version of transformers "
                f"follows the one and another the other. Received: {directory}: {name} is "
                f"{implied[name]!r} by the class and {CONFIG_FILE}, {value!r} in {TOKENIZER_FILE}"
            )


def _read_tokenizer_json(content: dict[str, Any], path: Path) -> tuple[dict[str, Any], list[str]]:
    """Returns the options and tokens of a WordPiece tokenizer.json; refuses any other kind."""
    parts = ("model", "normalizer", "pre_tokenizer")
    model, normalizer, pre_tokenizer = (_object(content.get(part)) for part in parts)
    # Files from before 2021 do not give the model's type.
    kind = model.get("type", "WordPiece" if "max_input_chars_per_word" in model else None)
    found = (kind, normalizer.get("type"), pre_tokenizer.get("type"), model.get("unk_token"))
    wanted = ("WordPiece", "BertNormalizer", "BertPreTokenizer", "[UNK]")
    if found != wanted or normalizer.get("clean_text") is not True:
        raise InputError(
            f"{TOKENIZER_FILE} must be a WordPiece model with a BertNormalizer (clean_text true), "
            f"a BertPreTokenizer and [UNK]. Received: {path} with model {found[0]}, normalizer "
            f"{found[1]}, pre_tokenizer {found[2]}, unk_token {found[3]!r}"
        )
    options = {name: normalizer.get(theirs) for name, theirs in NORMALIZER_NAMES.items()}
    if options["strip_accents"] is None:
        options["strip_accents"] = options["do_lower_case"]
    for name in ("continuing_subword_prefix", "max_input_chars_per_word"):
        options[name] = model.get(name)
    check_options(HuggingFaceTokenizerOptions, options, str(path))
    return options, _tokens(model, path)


def _tokens(model: dict[str, Any], path: Path) -> list[str]:
    """Returns the tokens of the model in a tokenizer.json, in the order of their ids."""
    vocabulary: Any = model.get("vocab")
    ids = sorted(vocabulary.values()) if isinstance(vocabulary, dict) and vocabulary else None
    if ids is None or any(type(index) is not int for index in ids) or ids != list(range(len(ids))):
        raise InputError(
            f"{path}: the vocabulary must map tokens to the ids 0, 1, 2, ..., each once. Received: "
            + (f"ids {ids[0]} to {ids[-1]} of {len(ids)} tokens" if ids else repr(vocabulary)[:60])
        )
    tokens = sorted(vocabulary, key=vocabulary.get)
    odd = [token for token in tokens if not token or _is_odd(token)]
    if odd:
        raise InputError(
            f"{path}: a token must be one word, without whitespace around it. Received: {odd[0]!r}"
        )
    return tokens


def _is_odd(token):
    """Returns True for outer whitespace or a line end; other blank tokens match no text anyway."""
    is_blank = not token.strip()
    return (token != token.strip() and not is_blank) or "\n" in token or "\r" in token


def _read_vocabulary(path: Path) -> list[str]:
    """Returns the lines of vocab.txt; refuses whitespace that we strip but `transformers` keeps."""
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"a vocabulary must be UTF-8. Received: {path} ({error.reason})") from None
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if _is_odd(line):
            raise InputError(
                "a token must be a line without whitespace around it. Received: "
                f"{path} line {number}: {line!r}"
            )
    return lines


def _check_special_tokens(directory, config, tokens):
    """Raises InputError unless the special tokens have their usual names."""
    ids = {token: index for index, token in enumerate(tokens)}
    for source in (CONFIG_FILE, SPECIAL_TOKENS_FILE):
        content = config if source == CONFIG_FILE else _read_optional(directory / source)
        for role, expected in zip(ROLES, SPECIAL_TOKENS, strict=True):
            token = content.get(role, expected)
            token = token.get("content") if isinstance(token, dict) else token
            if token != expected:
                raise InputError(
                    f"{directory / source}: {role} must be {expected}. Received: {token!r}"
                )
    missing = [token for token in SPECIAL_TOKENS if token not in ids]
    if missing:
        raise InputError(
            f"a vocabulary must hold {' '.join(SPECIAL_TOKENS)}. Received: {directory} "
            f"({len(tokens)} tokens) without {' '.join(missing)}"
        )
    check_added_tokens(directory, config, ids)


def check_added_tokens(directory: Path, config: dict[str, Any], ids: dict[str, int]) -> None:
    """Raises InputError if an added token is not a special token of the vocabulary.

    Special tokens other than the usual ones are allowed: they matter only if a text spells them.
    """
    for token, index, special in _added_tokens(directory, config):
        if ids.get(token) != index or not special:
            raise InputError(
                "an added token must be a special token of the vocabulary, with its id there: "
                f"others are cut out of the text before it is tokenized. Received: {directory}: "
                f"{token!r}, id {index!r}" + ("" if special else ", not special")
            )


def _added_tokens(directory, config):
    """Yields (token, id, whether it is special) for every added token that the files name."""
    added = _read_optional(directory / TOKENIZER_FILE).get("added_tokens")
    added = added if isinstance(added, list) else []
    listed = [(_object(entry), _object(entry).get("id")) for entry in added]
    for index, entry in _object(config.get("added_tokens_decoder")).items():
        listed.append((_object(entry), int(index) if index.isdecimal() else index))
    for entry, index in listed:
        yield entry.get("content"), index, entry.get("special") is True
    for token, index in _read_optional(directory / ADDED_TOKENS_FILE).items():
        yield token, index, token in SPECIAL_TOKENS


def _object(value: Any) -> dict[str, Any]:
    """Returns a JSON value if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def _read_object(path: Path) -> dict[str, Any]:
    content = read_json(read_bytes(path), str(path))
    if not isinstance(content, dict):
        raise InputError(f"file must hold a JSON object. Received: {path}: {str(content)[:60]}")
    return content


def _read_optional(path: Path) -> dict[str, Any]:
    return _read_object(path) if path.exists() else {}
