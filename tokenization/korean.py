"""WordPiece tokenization that keeps Hangul whole."""

import os
import unicodedata
import warnings

from tokenization.interface import TokenizerInterface, check_switches
from tokenization.normalization import CLEAN, CLEAN_AND_SPACE_CHINESE, SPACE_PUNCTUATION
from tokenization.vocabulary import (
    count_hangul_entries,
    load_strict_vocabulary,
    load_vocabulary,
)
from tokenization.wordpiece import UNKNOWN_TOKEN, WordPiece


class KoreanTokenizer(TokenizerInterface):
    """Composes, cleans, splits, then applies WordPiece; never decomposes, strips no accents.

    NFC makes decomposed files (macOS) equal to composed ones. It leaves chat jamo such as ㅋㅋ
    or ㅠㅠ alone, which NFKC would merge into syllables. Every switch works without the others.

    Args:
        vocab_file: one token a line.
        do_lower_case: lower-case Latin and other cased scripts.
        normalization: "NFC", or None to take the text as it is.
        continuation_prefix: marks a piece that does not begin its word; "" for none.
        word_end_marker: appended to each word before WordPiece, such as "_"; "" for none.
        mark_final_word: False leaves the text's last word without `word_end_marker`.
        split_punctuation: make each punctuation mark a word of its own; False also lets a text
            that says "[MASK]" produce that special token.
        split_chinese_characters: make each Hanja a word of its own.
        strict_vocabulary: refuse a vocabulary with blank or repeated lines, or without a special
            token. False reads it as google-research/bert does, and gives the id of [UNK] to
            tokens outside the vocabulary.

    Raises:
        InputError: a switch has a wrong value; the vocabulary cannot be read, or is refused.

    Source: the word-end-marker form follows ilhoonkim/BertTokenizer tokenization_kor.py.
    """

    kind = "korean"
    switches = {
        "do_lower_case": (True, False),
        "normalization": ("NFC", None),
        "continuation_prefix": str,
        "word_end_marker": str,
        "mark_final_word": (True, False),
        "split_punctuation": (True, False),
        "split_chinese_characters": (True, False),
        "strict_vocabulary": (True, False),
    }

    def __init__(
        self,
        vocab_file: str | os.PathLike,
        *,
        do_lower_case: bool = False,
        normalization: str | None = "NFC",
        continuation_prefix: str = "##",
        word_end_marker: str = "",
        mark_final_word: bool = True,
        split_punctuation: bool = True,
        split_chinese_characters: bool = True,
        strict_vocabulary: bool = True,
    ):
        self.do_lower_case = do_lower_case
        self.normalization = normalization
        self.continuation_prefix = continuation_prefix
        self.word_end_marker = word_end_marker
        self.mark_final_word = mark_final_word
        self.split_punctuation = split_punctuation
        self.split_chinese_characters = split_chinese_characters
        self.strict_vocabulary = strict_vocabulary
        check_switches(self._switches(), self.switches, "KoreanTokenizer")
        load = load_strict_vocabulary if strict_vocabulary else load_vocabulary
        vocab, vocabulary_bytes = load(vocab_file)
        unknown_id = None if strict_vocabulary else vocab.get(UNKNOWN_TOKEN)
        self._use_vocabulary(vocab, vocabulary_bytes, unknown_becomes_id=unknown_id)
        self.wordpiece = WordPiece(vocab, continuation_prefix)
        syllables, jamo = count_hangul_entries(vocab)
        if 10 * syllables < jamo:  # the opposite trap: a sub-character vocabulary needs NFD
            warnings.warn(
                f"{os.fspath(vocab_file)} holds {jamo} tokens with conjoining jamo, {syllables} "
                "with Hangul syllables: it was made for decomposed text, so nearly all Korean "
                "will become [UNK]. Use FullTokenizer (--tokenizer=full) with do_lower_case=True",
                stacklevel=2,
            )

    def basic_tokens(self, text: str) -> list[str]:
        """Returns the words before markers, before WordPiece."""
        if self.normalization:
            text = unicodedata.normalize(self.normalization, text)
        text = text.translate(CLEAN_AND_SPACE_CHINESE if self.split_chinese_characters else CLEAN)
        if self.do_lower_case:
            text = text.lower()
        if self.split_punctuation:
            text = text.translate(SPACE_PUNCTUATION)
        return text.split()

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into pieces, grouped by basic token."""
        words = self.basic_tokens(text)
        if self.word_end_marker:
            marked = len(words) if self.mark_final_word else len(words) - 1
            words[:marked] = [word + self.word_end_marker for word in words[:marked]]
        return [list(self.wordpiece.pieces(word)) for word in words]

    def config(self) -> dict:
        """Returns what `load_tokenizer` needs beside the vocabulary."""
        return {"kind": self.kind, **self._switches()}

    def _switches(self) -> dict:
        return {name: getattr(self, name) for name in self.switches}
