"""WordPiece tokenization, equal to google-research/bert token for token."""

import os
import unicodedata
import warnings

from tokenization.interface import TokenizerInterface, check_switches
from tokenization.normalization import CLEAN_AND_SPACE_CHINESE, SPACE_PUNCTUATION, STRIP_ACCENTS
from tokenization.vocabulary import count_hangul_entries, load_vocabulary

UNKNOWN_TOKEN = "[UNK]"

MAX_WORD_CHARACTERS = 200  # google-research/bert: a longer word is one [UNK]

# Distinct words remembered, about 40 MB of memory; natural text repeats most of its words.
MAX_CACHED_WORDS = 100_000


class WordPiece:
    """Cuts single words by greedy longest match, from the left.

    Args:
        vocab: the id of each piece.
        continuation_prefix: what marks a piece that does not begin its word.
    """

    def __init__(self, vocab: dict[str, int], continuation_prefix: str = "##"):
        self.vocab = vocab
        self.continuation_prefix = continuation_prefix
        self._longest_entry = max(map(len, vocab))  # no longer candidate needs a look-up
        self._cache = {}

    def pieces(self, word: str) -> tuple[str, ...]:
        """Returns the word's pieces, or ("[UNK]",) when any part of it has none."""
        pieces = self._cache.get(word)
        if pieces is None:
            if len(word) > MAX_WORD_CHARACTERS:
                return (UNKNOWN_TOKEN,)
            if len(self._cache) >= MAX_CACHED_WORDS:
                self._cache.clear()
            pieces = self._cache[word] = self._match(word)
        return pieces

    def continuation_pieces(self, word: str) -> tuple[str, ...]:
        """Returns the pieces of the rest of a word, whose beginning is elsewhere."""
        return self._match(word, self.continuation_prefix)

    def _match(self, word: str, prefix: str = "") -> tuple[str, ...]:
        vocab, pieces = self.vocab, []
        start = 0
        while start < len(word):
            for end in range(min(len(word), start + self._longest_entry), start, -1):
                piece = prefix + word[start:end]
                if piece in vocab:
                    break
            else:
                return (UNKNOWN_TOKEN,)
            pieces.append(piece)
            start, prefix = end, self.continuation_prefix
        return tuple(pieces)


class FullTokenizer(TokenizerInterface):
    """Cleans, splits, lower-cases, strips accents, then applies WordPiece.

    Lower-casing decomposes text (NFD), which leaves Hangul as conjoining jamo: right only for a
    vocabulary made of jamo. Without it text is not normalised at all.

    Args:
        vocab_file: one token a line, read with Google's quirks (`load_vocabulary`).
        do_lower_case: lower-case, decompose, drop accents; False keeps the text as it is.

    Raises:
        InputError: the vocabulary file is missing, empty or not UTF-8.

    Source: google-research/bert tokenization.py.
    """

    kind = "full"
    switches = {"do_lower_case": (True, False)}

    def __init__(self, vocab_file: str | os.PathLike, do_lower_case: bool = True):
        self.do_lower_case = do_lower_case
        check_switches(self._switches(), self.switches, "FullTokenizer")
        vocab, vocabulary_bytes = load_vocabulary(vocab_file)
        self._use_vocabulary(vocab, vocabulary_bytes)
        self.wordpiece = WordPiece(vocab)
        syllables, jamo = count_hangul_entries(vocab)
        # Below a tenth, the jamo entries cannot be what the vocabulary spells Korean with.
        if do_lower_case and 10 * jamo < syllables:
            warnings.warn(
                f"{os.fspath(vocab_file)} holds {syllables} tokens with Hangul syllables, {jamo} "
                "with conjoining jamo: lower-casing here takes Hangul apart, so nearly all Korean "
                "will become [UNK] or single jamo. Use KoreanTokenizer (--tokenizer=korean) or "
                "do_lower_case=False",
                stacklevel=2,
            )

    def basic_tokens(self, text: str) -> list[str]:
        """Returns the words before WordPiece; each punctuation mark, each Hanja is a word."""
        text = text.translate(CLEAN_AND_SPACE_CHINESE)
        if self.do_lower_case:
            # After lower(): the dot that lower() adds to a Turkish İ is dropped with the accents.
            text = unicodedata.normalize("NFD", text.lower()).translate(STRIP_ACCENTS)
        return text.translate(SPACE_PUNCTUATION).split()

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into pieces, grouped by basic token."""
        return [list(self.wordpiece.pieces(token)) for token in self.basic_tokens(text)]

    def config(self) -> dict:
        """Returns what `load_tokenizer` needs beside the vocabulary."""
        return {"kind": self.kind, **self._switches()}

    def _switches(self) -> dict:
        return {"do_lower_case": self.do_lower_case}
