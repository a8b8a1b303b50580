"""Implements SentencePiece tokenization as google-research/albert does it with an spm model."""

import functools
import os
import re
import unicodedata
from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Literal

from bert_common.errors import InputError
from bert_common.folders import read_bytes
from tokenization.base import EncodedPart, TokenizerInterface, listed
from tokenization.byte_pieces import BYTE_PIECES, join_bytes
from tokenization.characters import is_punctuation
from tokenization.normalization import CharacterMap
from tokenization.offsets import AlignedText
from tokenization.options import SentencePieceTokenizerOptions

if TYPE_CHECKING:
    import tensorflow as tf
    from sentencepiece import SentencePieceProcessor

WORD_START = "\u2581"  # "▁", how SentencePiece spells the space before a word

SURROGATE = re.compile("[\ud800-\udfff]")  # UTF-8 cannot encode it; it is read as U+FFFD
QUOTES = re.compile("``|''")  # TeX's spelling of quotation marks
LOWER = CharacterMap(str.lower)


def _decompose_without_marks(character: str) -> str:
    decomposed = unicodedata.normalize("NFKD", character)
    return "".join(part for part in decomposed if not unicodedata.combining(part))


# One character at a time is enough, because NFKD reorders only marks, which are dropped.
DECOMPOSE_WITHOUT_MARKS = CharacterMap(_decompose_without_marks)


def preprocess_text(inputs: str, remove_space: bool = True, lower: bool = False) -> str:
    """Decomposes a text (NFKD) and drops combining marks, as google-research/albert does.

    `remove_space` collapses whitespace first, `lower` lower-cases last. The model's own NFKC
    composes Hangul again.

    Source: google-research/albert tokenization.py.
    """
    text = " ".join(inputs.split()) if remove_space else inputs
    text = text.translate(DECOMPOSE_WITHOUT_MARKS)
    return text.lower() if lower else text


class SentencePieceTokenizer(TokenizerInterface):
    """Preprocesses text as ALBERT's programs do, then applies a SentencePiece model.

    Unlike google-research/albert on Python 3, it cuts "9," into "9" and "," without a "▁".

    Args:
        spm_model_file: the model, such as 30k-clean.model.
        do_lower_case, variant: as in `SentencePieceTokenizerOptions`.

    Raises:
        InputError: the model cannot be read, or the sentencepiece library is missing.

    Attributes:
        sp_model: the SentencePieceProcessor.

    Source: google-research/albert tokenization.py.
    """

    kind = "sentencepiece"
    options_type = SentencePieceTokenizerOptions
    options: SentencePieceTokenizerOptions

    def __init__(
        self,
        spm_model_file: str | os.PathLike[str],
        do_lower_case: bool | None = True,
        variant: Literal["google", "huggingface"] = "google",
    ) -> None:
        self.options = SentencePieceTokenizerOptions(do_lower_case, variant)
        model_bytes = read_bytes(spm_model_file)
        self.sp_model = model = _load_model(model_bytes, spm_model_file)
        vocab = {model.id_to_piece(index): index for index in range(model.get_piece_size())}
        # ALBERT's models have <pad>, others [PAD]: the model knows which piece has this role.
        pad = model.id_to_piece(model.pad_id()) if model.pad_id() >= 0 else "[PAD]"
        special_tokens = (pad, model.id_to_piece(model.unk_id()), "[CLS]", "[SEP]", "[MASK]")
        self._use_vocabulary(vocab, model_bytes, special_tokens, unknown_becomes_id=model.unk_id())

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into tokens, grouped by eojeol, with punctuation marks as separate words.

        A word begins at "▁"; a token of only punctuation is a separate word. A lone "▁" belongs to
        the token after it.
        """
        return group_words(self._pieces(text))

    def encode_words(self, texts: Iterable[str]) -> "tf.RaggedTensor":
        """Encodes texts, an iterable or eager tensor, with the library's own batch call.

        Returns:
            int32 tf.RaggedTensor [B, (words), (tokens)], grouped as by `tokenize_words`.
        """
        import tensorflow as tf  # here: the other methods work without it

        given = listed(texts.numpy() if isinstance(texts, tf.Tensor) else texts)
        preprocessed = [self._preprocess(text) for text in given]
        rows = [
            group_words(split_numbers(self.sp_model, pieces))
            for pieces in self.sp_model.encode(preprocessed, out_type=str)
        ]
        words = [word for row in rows for word in row]
        ids = self.convert_tokens_to_ids(piece for word in words for piece in word)
        ids = tf.RaggedTensor.from_row_lengths(tf.constant(ids, tf.int32), list(map(len, words)))
        return tf.RaggedTensor.from_row_lengths(ids, list(map(len, rows)))

    def encode_part(
        self, text: str, follows_mask: bool = False, precedes_mask: bool = False
    ) -> EncodedPart:
        """Encodes a part of a text; the span of a "▁" is the space before its word."""
        edges = ("", "")
        if follows_mask or precedes_mask:
            # Put between two characters, because the model drops spaces at the ends.
            inner = self.sp_model.normalize(self._preprocess(f"0{text}0")).strip(WORD_START)[1:-1]
            inner = inner.replace(WORD_START, " ")
            edges = inner[:1], inner[-1:]
        continues = follows_mask and edges[0] not in ("", " ")
        model = self._model_of_continuations if continues else self.sp_model
        aligned = AlignedText(SURROGATE.sub("\ufffd", text))
        if self.options.variant == "huggingface":
            aligned = aligned.replace(QUOTES, '"')
            aligned = aligned.translate(LOWER) if self.do_lower_case else aligned
        if self.do_lower_case is not None:
            aligned = aligned.with_single_spaces().translate(DECOMPOSE_WITHOUT_MARKS)
            aligned = aligned.lower() if self.do_lower_case else aligned
        # The library's offsets count bytes.
        sizes = (len(character.encode("utf-8")) for character in aligned.text)
        character_at = {place: i for i, place in enumerate(accumulate(sizes, initial=0))}
        pieces, spans = [], []
        for piece in model.encode(aligned.text, out_type="proto").pieces:
            start, end = character_at[piece.begin], character_at[piece.end]
            parts = split_numbers(self.sp_model, [piece.piece])
            pieces += parts
            # The parts of a number have one character per digit, counted from its end; other
            # pieces are a single part.
            ends = [end]
            for part in reversed(parts[1:]):
                ends.append(max(start, ends[-1] - len(part)))
            for part_end in reversed(ends):
                spans.append(aligned.span(start, part_end))
                start = part_end
        return EncodedPart(self.convert_tokens_to_ids(pieces), spans, edges)

    @functools.cached_property
    def _model_of_continuations(self):
        """The same model without the space that it puts before every text."""
        from sentencepiece import SentencePieceProcessor, sentencepiece_model_pb2

        generated: Any = sentencepiece_model_pb2  # its classes are created at run time
        proto = generated.ModelProto.FromString(self.vocabulary_bytes)
        proto.normalizer_spec.add_dummy_prefix = False
        model = SentencePieceProcessor()
        model.LoadFromSerializedProto(proto.SerializeToString())
        return model

    def decode(self, ids: Iterable[int]) -> str:
        """Returns a text that `encode` turns into the same ids, if any text does.

        A run of unknown characters is written as one character that the model lacks.
        """
        ids = list(ids)
        tokens = [
            self.written_unknown if index == self.unk_id else token
            for index, token in zip(ids, self.convert_ids_to_tokens(ids), strict=True)
        ]
        if self.sp_model.is_byte(self.vocab.get(BYTE_PIECES[0], self.sp_model.unk_id())):
            tokens = join_bytes(tokens, "")
        return "".join(tokens).replace(WORD_START, " ").strip(" ")

    def config(self) -> dict[str, Any]:
        """Returns the contents of tokenizer_config.json."""
        config = super().config()
        if self.options.variant == "google":  # files from before this option do not have it
            del config["variant"]
        return config

    def _preprocess(self, text: str | bytes) -> str:
        if isinstance(text, bytes):  # as in Google's programs
            text = text.decode("utf-8", "ignore")
        text = SURROGATE.sub("\ufffd", text)
        if self.options.variant == "huggingface":
            text = QUOTES.sub('"', text)
            text = text.translate(LOWER) if self.do_lower_case else text
        if self.do_lower_case is None:
            return text
        return preprocess_text(text, lower=self.do_lower_case)

    def _pieces(self, text: str) -> list[str]:
        return split_numbers(
            self.sp_model, self.sp_model.encode(self._preprocess(text), out_type=str)
        )


def split_numbers(model: "SentencePieceProcessor", pieces: list[str]) -> list[str]:
    """Cuts tokens such as "▁199," so that numbers are cut the same with and without a comma."""
    split = []
    for piece in pieces:
        if len(piece) > 1 and piece[-1] == "," and piece[-2].isdigit():
            number = model.encode(piece[:-1].replace(WORD_START, ""), out_type=str)
            if not piece.startswith(WORD_START):  # the model adds "▁" to any text
                number[0] = number[0].removeprefix(WORD_START)
            split += [part for part in number if part] + [","]
        else:
            split.append(piece)
    return split


def group_words(pieces: list[str]) -> list[list[str]]:
    """Groups tokens by word, as `SentencePieceTokenizer.tokenize_words` describes."""
    words: list[list[str]] = []
    after_punctuation = False
    for piece in pieces:
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


def _load_model(model_bytes: bytes, path: str | os.PathLike[str]) -> "SentencePieceProcessor":
    try:
        # Imported here because the other tokenizers work without the library.
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise InputError(
            "the sentencepiece library must be installed (pip install sentencepiece). "
            f"Received: {error}"
        ) from error
    model = SentencePieceProcessor()
    try:
        model.LoadFromSerializedProto(model_bytes)
    except RuntimeError as error:
        raise InputError(
            f"file must be a SentencePiece model. Received: {os.fspath(path)} "
            f"({len(model_bytes)} bytes)"
        ) from error
    return model
