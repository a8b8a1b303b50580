"""SentencePiece tokenization, equal to google-research/albert with an spm model."""

import os
import unicodedata

from tokenization.characters import is_punctuation
from tokenization.errors import InputError
from tokenization.interface import TokenizerInterface, check_switches
from tokenization.vocabulary import read_bytes

WORD_START = "\u2581"  # "▁", how SentencePiece spells the space before a word


def preprocess_text(text: str, lower: bool) -> str:
    """Collapses spaces, decomposes (NFKD), drops combining marks, then may lower-case.

    Decomposed Hangul is composed again by the model's own NFKC. Combining marks here are those
    with a combining class, so kana lose their voicing mark.

    Source: google-research/albert tokenization.py.
    """
    decomposed = unicodedata.normalize("NFKD", " ".join(text.split()))
    text = "".join(character for character in decomposed if not unicodedata.combining(character))
    return text.lower() if lower else text


class SentencePieceTokenizer(TokenizerInterface):
    """Preprocesses as ALBERT's programs do, then applies a SentencePiece model.

    One difference to google-research/albert, whose comparison of text with bytes never holds on
    Python 3: a piece such as "9," becomes "9" "," with no "▁" between, all of them text.

    Args:
        spm_model_file: the model, such as 30k-clean.model.
        do_lower_case: lower-case during preprocessing; None skips preprocessing altogether.

    Raises:
        InputError: the model cannot be read, or the sentencepiece library is missing.

    Source: google-research/albert tokenization.py.
    """

    kind = "sentencepiece"
    switches = {"do_lower_case": (True, False, None)}

    def __init__(self, spm_model_file: str | os.PathLike, do_lower_case: bool | None = True):
        self.do_lower_case = do_lower_case
        check_switches(self._switches(), self.switches, "SentencePieceTokenizer")
        model_bytes = read_bytes(spm_model_file)
        self._model = model = _load_model(model_bytes, spm_model_file)
        vocab = {model.id_to_piece(index): index for index in range(model.get_piece_size())}
        # ALBERT's models say <pad>, others [PAD]: the model knows which piece has the role.
        pad = model.id_to_piece(model.pad_id()) if model.pad_id() >= 0 else "[PAD]"
        special_tokens = (pad, model.id_to_piece(model.unk_id()), "[CLS]", "[SEP]", "[MASK]")
        self._use_vocabulary(vocab, model_bytes, special_tokens, unknown_becomes_id=model.unk_id())

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into pieces, grouped by eojeol, with punctuation apart.

        A word begins at "▁"; a piece of nothing but punctuation is a word of its own. A lone "▁"
        belongs to the piece after it, whatever that is.
        """
        words = []
        after_punctuation = False
        for piece in self._pieces(text):
            punctuation = piece != WORD_START and all(
                is_punctuation(character) for character in piece.removeprefix(WORD_START)
            )
            begins = not words or piece.startswith(WORD_START)
            if begins or ((punctuation or after_punctuation) and words[-1] != [WORD_START]):
                words.append([piece])
            else:
                words[-1].append(piece)
            after_punctuation = punctuation
        return words

    def config(self) -> dict:
        """Returns what `load_tokenizer` needs beside the model."""
        return {"kind": self.kind, **self._switches()}

    def _switches(self) -> dict:
        return {"do_lower_case": self.do_lower_case}

    def _pieces(self, text: str) -> list[str]:
        if self.do_lower_case is not None:
            text = preprocess_text(text, lower=self.do_lower_case)
        pieces = []
        for piece in self._model.encode(text, out_type=str):
            if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
                pieces += self._number_then_comma(piece)
            else:
                pieces.append(piece)
        return pieces

    def _number_then_comma(self, piece: str) -> list[str]:
        """Cuts a piece such as "▁199," so that numbers look alike with or without a comma."""
        number = self._model.encode(piece[:-1].replace(WORD_START, ""), out_type=str)
        if not piece.startswith(WORD_START):  # the model adds "▁" to whatever it is given
            number[0] = number[0].removeprefix(WORD_START)
        return [part for part in number if part] + [","]


def _load_model(model_bytes: bytes, path):
    try:
        # Only here: the other tokenizers work without the library.
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise InputError(
            "The sentencepiece library must be installed (pip install sentencepiece). "
            f"Received: {error}"
        ) from error
    model = SentencePieceProcessor()
    try:
        model.LoadFromSerializedProto(model_bytes)
    except RuntimeError as error:
        raise InputError(
            f"File must be a SentencePiece model. Received: {os.fspath(path)} "
            f"({len(model_bytes)} bytes)"
        ) from error
    return model
