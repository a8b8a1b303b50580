"""Finds and opens the tokenizer of a model's folder."""

import glob
import os
import re
from typing import TYPE_CHECKING, Any

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_tf.config import EncoderConfig
from model_formats.training_record import POSITIONS_FILE
from tokenization.huggingface.folder import SENTENCEPIECE_FILE, TOKENIZER_FILE, VOCABULARY_FILE
from tokenization.loading import CONFIG_FILE

if TYPE_CHECKING:
    from model_formats.model_folder import ModelFolder

# Every transformers folder with a tokenizer has at least one of these files.
TOKENIZER_FILES = (CONFIG_FILE, TOKENIZER_FILE, VOCABULARY_FILE, SENTENCEPIECE_FILE)


def find_tokenizer_files(model: "ModelFolder", do_lower_case: bool | None) -> dict[str, Any]:
    """Finds the values of `TokenizerFlags` for the tokenizer of a model's folder.

    Returns:
        A dict from the name of a flag to its value; empty if there is no tokenizer.

    Raises:
        InputError: there are several vocabularies, the folder's name contradicts --do_lower_case,
            or this project wrote the folder but its tokenizer configuration is missing.
    """
    folder = model.path
    in_folder = {"tokenizer_dir": folder, "do_lower_case": do_lower_case}
    if os.path.exists(os.path.join(folder, CONFIG_FILE)):
        return in_folder
    if model.transformers_config is not None:
        found = any(os.path.exists(os.path.join(folder, name)) for name in TOKENIZER_FILES)
        return in_folder if found else {}
    patterns = {"spm_model_file": ("*.model",), "vocab_file": ("vocab.txt", "vocab*.txt")}
    for flag, names in patterns.items():
        matches = (sorted(glob.glob(os.path.join(glob.escape(folder), name))) for name in names)
        paths = next(filter(None, matches), [])
        if len(paths) > 1:
            raise InputError(
                f"--model_dir must hold one vocabulary, or --{flag} must name it. Received: "
                f"{folder} with {', '.join(map(os.path.basename, paths))}"
            )
        is_recorded = os.path.exists(os.path.join(folder, POSITIONS_FILE))
        if paths and (is_recorded or model.is_fine_tuned):
            raise InputError(
                f"a folder that training wrote must hold {CONFIG_FILE}, or --{flag} must name the "
                f"tokenizer. Received: {folder} with {os.path.basename(paths[0])} alone"
            )
        if paths:
            case = _choose_case(model, do_lower_case)
            if case is None and flag == "vocab_file" and _has_capitals(paths[0]):
                case = False
            return {flag: paths[0], "do_lower_case": case}
    return {}


def _choose_case(model, do_lower_case):
    """Decides by flag and folder name whether to lower-case; returns None if neither says."""
    for path in filter(None, (model.path, model.named)):
        named = _named_case(os.path.basename(os.path.abspath(path)))
        if named is None:
            continue
        if do_lower_case not in (None, named):
            raise InputError(
                "--do_lower_case must agree with the name of the model's folder, unless "
                "--vocab_file or --spm_model_file is given too. Received: "
                f"--do_lower_case={str(do_lower_case).lower()}, {path}"
            )
        return named
    return do_lower_case


def _named_case(name):
    """Decides by a released model's name whether it lower-cases; returns None if unclear.

    Names look like uncased_L-12_H-768_A-12, multi_cased_L-12_H-768_A-12, chinese_L-12_H-768_A-12.
    As google-research/bert's validate_case_matches_checkpoint, but for models of all sizes.
    """
    words = re.split("[^a-z]+", name.lower())
    if "uncased" in words or "cased" in words:
        return "uncased" in words
    return True if words[0] in ("chinese", "multilingual") else None


def _has_capitals(vocab_file):
    """Returns True if a vocabulary has a word or a part of one with a capital letter."""
    # Special tokens are no sign: Google's lower-casing multilingual and Chinese models have <S>.
    pieces = read_bytes(vocab_file).splitlines()
    return any(re.search(b"[A-Z]", piece) for piece in pieces if piece[:1] not in (b"[", b"<"))


def check_table(config: EncoderConfig, size: int, where: str) -> None:
    """Raises an `InputError` if the vocabulary at `where`, of `size` tokens, is too large."""
    if size > config.vocab_size:
        raise InputError(
            "vocab_size of the configuration must be at least the vocabulary's size. Received: "
            f"vocab_size={config.vocab_size}, {where} has {size} entries"
        )
