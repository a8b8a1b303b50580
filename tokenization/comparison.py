"""Opens vocabularies of every common kind, to see how each of them cuts text."""

import json
import os
import unicodedata
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from bert_common.errors import InputError
from tokenization.korean import KoreanTokenizer
from tokenization.loading import CONFIG_FILE, load_tokenizer

UNKNOWN = "[UNK]"
WORD_START = "\u2581"  # SentencePiece's mark for a space


class Cutter(NamedTuple):
    """A vocabulary that was opened.

    Attributes:
        name: the file's or folder's name.
        kind: the algorithm, as people call it.
        size: how many pieces it has.
        pieces: from text to the pieces as the vocabulary writes them.
        plain: from a piece to the text that it stands for, "" for a piece that is no text.
    """

    name: str
    kind: str
    size: int
    pieces: Callable[[str], list[str]]
    plain: Callable[[str], str]


def open_cutter(path: str | os.PathLike) -> Cutter:
    """Opens a vocabulary by what its path is.

    Args:
        path: a folder with tokenizer_config.json; a WordPiece vocabulary (.txt), used as
            KoreanTokenizer uses it; a SentencePiece model (.model); a tokenizer.json of Hugging
            Face tokenizers (.json).

    Raises:
        InputError: none of these; a file that is missing or malformed; tokenizers not installed.
    """
    path = Path(path)
    if path.is_dir() and (path / CONFIG_FILE).exists():
        return _open_folder(path)
    opened = OPENERS.get(path.suffix)
    if opened is None or path.is_dir():
        raise InputError(
            f"a vocabulary must be a folder with {CONFIG_FILE}, or a file named "
            f"{' '.join(OPENERS)}. Received: {path}"
        )
    if not path.is_file():
        raise InputError(f"File must exist. Received: {path}")
    return opened(path)


def boundaries(word: str, pieces: list[str]) -> list[int] | None:
    """Where the pieces of a word meet, as positions in it.

    Args:
        word: one word.
        pieces: the text of each piece, without marks.

    Returns:
        The positions between characters, in order. A place inside a character (between jamo or
        bytes) is none. None when the pieces do not spell the word: something is unknown.
    """
    sound = unicodedata.normalize("NFD", word)
    if unicodedata.normalize("NFD", "".join(pieces)) != sound:
        return None
    position_of, length = {}, 0
    for position, character in enumerate(word):
        position_of[length] = position
        length += len(unicodedata.normalize("NFD", character))
    places, length = [], 0
    for piece in pieces[:-1]:
        length += len(unicodedata.normalize("NFD", piece))
        if length in position_of and 0 < position_of[length] < len(word):
            places.append(position_of[length])
    return sorted(set(places))


def _open_folder(path):
    tokenizer = load_tokenizer(path)
    kind = "unigram" if tokenizer.kind == "sentencepiece" else "WordPiece"
    plain = _plain_sentencepiece if tokenizer.kind == "sentencepiece" else _plain_wordpiece
    return Cutter(path.name, kind, tokenizer.vocab_size, tokenizer.tokenize, plain)


def _open_wordpiece(path):
    with warnings.catch_warnings():  # a vocabulary from elsewhere, odd lines and all
        warnings.simplefilter("ignore")
        tokenizer = KoreanTokenizer(path, strict_vocabulary=False)
    return Cutter(
        path.name, "WordPiece", tokenizer.vocab_size, tokenizer.tokenize, _plain_wordpiece
    )


def _open_sentencepiece(path):
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.load(str(path))
    except (OSError, RuntimeError) as error:
        raise InputError(f"File must be a SentencePiece model. Received: {path}") from error
    # BPE's scores are the numbers of its merges, a unigram model's are logarithms.
    scores = map(processor.get_score, range(processor.get_piece_size()))
    kind = "BPE" if all(map(float.is_integer, scores)) else "unigram"

    def pieces(text):
        return processor.encode(text, out_type=str)

    return Cutter(path.name, kind, processor.get_piece_size(), pieces, _plain_sentencepiece)


def _open_hugging_face(path):
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise InputError(
            "a tokenizer.json needs the package tokenizers (pip install -e '.[compare]'). "
            f"Received: {path}, not installed"
        ) from None
    try:
        content = path.read_text(encoding="utf-8")
        kind = json.loads(content)["model"]["type"]
        tokenizer = Tokenizer.from_str(content)
    except Exception as error:  # tokenizers raises Exception itself
        raise InputError(
            f"File must be a tokenizer.json of Hugging Face. Received: {path}"
        ) from error
    plain = _plain_wordpiece if kind == "WordPiece" else _plain_sentencepiece
    shown = str
    if '"ByteLevel"' in content:
        kind, plain, shown = f"byte-level {kind}", _plain_bytes, _shown_bytes

    def pieces(text):
        encoding = tokenizer.encode(text, add_special_tokens=False)
        return [shown(piece) for piece in encoding.tokens]

    return Cutter(path.name, kind, tokenizer.get_vocab_size(), pieces, plain)


# How a file name ends -> what opens it.
OPENERS = {".txt": _open_wordpiece, ".model": _open_sentencepiece, ".json": _open_hugging_face}


def _plain_wordpiece(piece):
    return "" if piece == UNKNOWN else piece.removeprefix("##")


def _plain_sentencepiece(piece):
    return piece.replace(WORD_START, "")


def _byte_letters():
    """The letter that stands for each byte in byte-level vocabularies, as GPT-2 chose them."""
    themselves = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in themselves]
    letters = {chr(byte): byte for byte in themselves}
    return letters | {chr(256 + i): byte for i, byte in enumerate(others)}


BYTE_OF_LETTER = _byte_letters()


def _shown_bytes(piece):
    """A byte-level piece as text; bytes that are no whole character as <EC9E>."""
    if not set(piece) <= BYTE_OF_LETTER.keys():
        return piece  # a special token
    content = bytes(BYTE_OF_LETTER[letter] for letter in piece)
    try:
        return content.decode("utf-8").replace(" ", WORD_START)
    except UnicodeDecodeError:
        return f"<{content.hex().upper()}>"


def _plain_bytes(piece):
    return "" if piece.startswith("<") and piece.endswith(">") else _plain_sentencepiece(piece)
