"""Opens vocabularies of every common kind, to compare how they cut text."""

import functools
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from bert_common.json_text import read_json
from tokenization.byte_pieces import byte_of
from tokenization.decoding import UNKNOWN_TOKEN
from tokenization.korean import KoreanTokenizer
from tokenization.loading import CONFIG_FILE, KINDS, load_tokenizer
from tokenization.sentencepiece import WORD_START, SentencePieceTokenizer


class OpenedVocabulary(NamedTuple):
    """A vocabulary with the functions that use it."""

    name: str  # of the file or folder
    kind: str  # the usual name of the algorithm
    size: int  # the number of pieces
    pieces: Callable[[str], list[str]]  # cuts a text into pieces, as the vocabulary spells them
    plain: Callable[[str], str]  # returns the text that a piece represents, "" if none


def open_vocabulary(path: str | os.PathLike[str]) -> OpenedVocabulary:
    """Opens a vocabulary, whose path indicates its kind.

    The path is a folder with tokenizer_config.json; a WordPiece vocabulary (.txt), used with this
    project's tokenizer_config.json in its folder, or else with KoreanTokenizer's defaults; a
    SentencePiece model (.model); or a tokenizer.json of Hugging Face tokenizers (.json), which
    requires the package tokenizers.
    """
    path = Path(path)
    if path.is_dir() and (path / CONFIG_FILE).exists():
        return _open_folder(path)
    open_file = OPENERS.get(path.suffix)
    if open_file is None or path.is_dir():
        raise InputError(
            f"a vocabulary must be a folder with {CONFIG_FILE}, or a file named "
            f"{' '.join(OPENERS)}. Received: {path}"
        )
    if not path.is_file():
        raise InputError(f"file must exist. Received: {path}")
    return open_file(path)


def open_vocabularies(paths: Sequence[str]) -> list[OpenedVocabulary]:
    """Opens vocabularies; the whole path is the name of those whose last names are the same."""
    opened = [open_vocabulary(path) for path in paths]
    names = [each.name for each in opened]
    return [
        each if names.count(each.name) == 1 else each._replace(name=path)
        for path, each in zip(paths, opened, strict=True)
    ]


def _open_folder(path):
    tokenizer = load_tokenizer(path)
    if isinstance(tokenizer, SentencePieceTokenizer):
        kind, plain = _sentencepiece_kind(tokenizer.sp_model), _plain_sentencepiece
    else:
        prefix = tokenizer.wordpiece.continuation_prefix
        kind, plain = "WordPiece", functools.partial(_plain_wordpiece, prefix=prefix)
    name = os.path.basename(os.path.abspath(path))  # also of "."
    return OpenedVocabulary(name, kind, tokenizer.vocab_size, tokenizer.tokenize, plain)


def _open_wordpiece(path):
    if _is_of_our_folder(path):
        return _open_folder(path.parent)._replace(name=path.name)
    with warnings.catch_warnings():  # another project's vocabulary may have odd lines
        warnings.simplefilter("ignore")
        tokenizer = KoreanTokenizer(path, strict_vocabulary=False)
    size = tokenizer.vocab_size
    return OpenedVocabulary(path.name, "WordPiece", size, tokenizer.tokenize, _plain_wordpiece)


def _is_of_our_folder(path):
    """Returns True if a file is the vocabulary of a tokenizer that `save_tokenizer` wrote."""
    config_file = path.parent / CONFIG_FILE
    try:
        config = read_json(read_bytes(config_file), str(config_file))
    except InputError:  # missing, or written by another program
        return False
    kind = config.get("kind") if isinstance(config, dict) else None
    return isinstance(kind, str) and kind in KINDS and KINDS[kind][1] == path.name


def _open_sentencepiece(path):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load(str(path))
    except (OSError, RuntimeError) as error:
        raise InputError(f"file must be a SentencePiece model. Received: {path}") from error
    size, kind = processor.get_piece_size(), _sentencepiece_kind(processor)
    pieces = functools.partial(processor.encode, out_type=str)
    return OpenedVocabulary(path.name, kind, size, pieces, _plain_sentencepiece)


def _sentencepiece_kind(processor):
    # BPE models have the ranks of merges as scores, unigram models have logarithms.
    scores = map(processor.get_score, range(processor.get_piece_size()))
    return "BPE" if all(map(float.is_integer, scores)) else "unigram"


def _open_hugging_face(path):
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise InputError(
            "a tokenizer.json requires the package tokenizers (pip install -e '.[compare]'). "
            f"Received: {path}, without that package"
        ) from None
    try:
        content = path.read_text(encoding="utf-8")
        tokenizer = Tokenizer.from_str(content)
        kind = type(tokenizer.model).__name__  # files from before 2021, as GPT-2's, have no "type"
        # Files of sentence-transformers, for example, truncate and pad texts for the model.
        tokenizer.no_truncation()
        tokenizer.no_padding()
    except Exception as error:  # tokenizers raises plain Exceptions
        raise InputError(
            f"file must be a tokenizer.json of Hugging Face. Received: {path}"
        ) from error
    plain = _plain_wordpiece if kind == "WordPiece" else _plain_sentencepiece
    spell = str
    if '"ByteLevel"' in content:
        kind, plain, spell = f"byte-level {kind}", _plain_bytes, _spell_bytes

    def pieces(text):
        encoding = tokenizer.encode(text, add_special_tokens=False)
        return [spell(piece) for piece in encoding.tokens]

    return OpenedVocabulary(path.name, kind, tokenizer.get_vocab_size(), pieces, plain)


# File suffix -> the function that opens such a file.
OPENERS = {".txt": _open_wordpiece, ".model": _open_sentencepiece, ".json": _open_hugging_face}


def _plain_wordpiece(piece, prefix="##"):
    is_text = piece != UNKNOWN_TOKEN and byte_of(piece, prefix) is None
    return piece.removeprefix(prefix) if is_text else ""


def _plain_sentencepiece(piece):
    return piece.replace(WORD_START, "")


def _byte_letters():
    """Returns the byte of each letter of byte-level vocabularies, as chosen for GPT-2."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    return letters | {chr(256 + i): byte for i, byte in enumerate(others)}


BYTE_OF_LETTER = _byte_letters()


def _spell_bytes(piece):
    """Returns a byte-level piece as text; the bytes of an incomplete character become <EC9E>."""
    if not set(piece) <= BYTE_OF_LETTER.keys():
        return piece  # a special token
    content = bytes(BYTE_OF_LETTER[letter] for letter in piece)
    try:
        return content.decode("utf-8").replace(" ", WORD_START)
    except UnicodeDecodeError:
        return f"<{content.hex().upper()}>"


def _plain_bytes(piece):
    return "" if piece.startswith("<") and piece.endswith(">") else _plain_sentencepiece(piece)
