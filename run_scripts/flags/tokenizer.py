"""Declares the flags that name a tokenizer."""

import dataclasses

from bert_common.errors import InputError
from run_scripts.flags import groups
from tokenization.loading import Tokenizer, open_named


@dataclasses.dataclass(frozen=True)
class TokenizerFlags:
    """The flags of every program with a tokenizer."""

    vocab_file: str = groups.TOKENIZER.input_file(
        "The vocabulary, one token per line. Not needed if another flag names a tokenizer or "
        "a model with a tokenizer.",
        in_manifest=False,
    )
    spm_model_file: str = groups.TOKENIZER.input_file(
        "A SentencePiece model, instead of --vocab_file.", in_manifest=False
    )
    tokenizer: str = groups.TOKENIZER.optional(
        "The kind of tokenizer. full: BERT's. korean: BERT's, but without decomposing Hangul "
        "syllables. sentencepiece: ALBERT's. Default: sentencepiece if --spm_model_file is given, "
        "else full.",
        choices=("full", "korean", "sentencepiece"),
        in_manifest=False,
    )
    tokenizer_dir: str = groups.TOKENIZER.input_folder(
        "A tokenizer's folder, with tokenizer_config.json and a vocabulary, saved by this project "
        "or transformers. Cannot be combined with --vocab_file, --spm_model_file or --tokenizer.",
        in_manifest=False,
    )
    do_lower_case: bool = groups.TOKENIZER.optional(
        "Lower-case the text. Default: as saved with the tokenizer. If nothing is saved: off for "
        "--tokenizer=korean or a cased --model_dir (judged by name or vocabulary), else on.",
        in_manifest=False,
    )


def check_tokenizer_flags(flags: TokenizerFlags, folder: str | None = None) -> None:
    """Raises an `InputError` for two tokenizers or none; messages name the model's `folder`."""
    if flags.tokenizer_dir:
        for name in ("vocab_file", "spm_model_file", "tokenizer"):
            if getattr(flags, name):
                raise InputError(
                    f"--tokenizer_dir must be given without --{name}. Received: "
                    f"--tokenizer_dir={flags.tokenizer_dir}, --{name}={getattr(flags, name)}"
                )
    elif flags.spm_model_file:
        if flags.tokenizer not in (None, "sentencepiece"):
            raise InputError(
                "--spm_model_file must be given without --tokenizer, or with sentencepiece. "
                f"Received: --spm_model_file={flags.spm_model_file}, --tokenizer={flags.tokenizer}"
            )
        if flags.vocab_file:
            print(f"note: --vocab_file={flags.vocab_file} is ignored, as --spm_model_file is given")
    elif flags.tokenizer == "sentencepiece":
        raise InputError(
            "--tokenizer=sentencepiece must be given with --spm_model_file. Received: no model"
            + (f", --vocab_file={flags.vocab_file}" if flags.vocab_file else "")
        )
    elif not flags.vocab_file:
        raise InputError(
            "one of --vocab_file, --spm_model_file, --tokenizer_dir must be given, or a "
            "--model_dir that holds a tokenizer. Received: "
            + (f"--model_dir={folder} without" if folder else "none")
        )


def source_of(flags: TokenizerFlags) -> str | None:
    """Returns the folder or file that the flags name for the tokenizer, or None."""
    return flags.tokenizer_dir or flags.spm_model_file or flags.vocab_file


def open_tokenizer(flags: TokenizerFlags) -> Tokenizer:
    """Opens the tokenizer that the flags name; it must have the special tokens of records."""
    lower, where = flags.do_lower_case, source_of(flags)
    tokenizer = open_named(
        tokenizer_dir=flags.tokenizer_dir,
        spm_model_file=flags.spm_model_file,
        vocab_file=flags.vocab_file,
        tokenizer=flags.tokenizer,
        do_lower_case=lower,
    )
    if flags.tokenizer_dir and lower not in (None, tokenizer.do_lower_case):
        raise InputError(
            "--do_lower_case must agree with the tokenizer's folder (leave it out). Received: "
            f"--do_lower_case={lower}, {where}: {tokenizer.do_lower_case}"
        )
    needed = {
        "[UNK]": tokenizer.unk_id,
        "[CLS]": tokenizer.cls_id,
        "[SEP]": tokenizer.sep_id,
        "[MASK]": tokenizer.mask_id,
    }
    missing = [token for token, index in needed.items() if index is None]
    if missing:
        raise InputError(f"{where} must have {', '.join(needed)}. Received: no {missing}")
    return tokenizer
