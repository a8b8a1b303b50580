"""Defines the interface that all tokenizers share."""

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from bert_common.errors import InputError
from tokenization.decoding import UNKNOWN_TOKEN, UNKNOWN_WORD, unknown_character
from tokenization.options import Options
from tokenization.vocabulary import SPECIAL_TOKENS

if TYPE_CHECKING:  # TensorFlow is loaded where it is needed; the others import this module
    import tensorflow as tf

    from tokenization.offsets import AlignedText
    from tokenization.tf_graph.graph import GraphTokenizer
    from tokenization.wordpiece import WordPiece


class EncodedPart(NamedTuple):
    """A part of a text, encoded by `TokenizerInterface.encode_part`."""

    ids: list[int]
    spans: list[tuple[int, int]]  # (start, end) of each token in the part
    # The part's first and last character after dropped characters are removed, "" if none is left.
    # A space stands for whitespace and for a character that WordPiece gets as a separate word.
    edges: tuple[str, str]


class TokenizerInterface:
    """The methods and attributes that all tokenizers share.

    A subclass declares `kind` and `options_type`, defines `tokenize_words` and `encode_part`, sets
    `options` and calls `_use_vocabulary` once.

    Attributes:
        kind: the tokenizer's name in tokenizer_config.json.
        options_type: a frozen dataclass, which declares the tokenizer's options.
        options: an instance of `options_type`.
        unknown_candidates: the characters that `decode` may write for [UNK], in order of choice.
        decomposes: whether it decomposes Hangul syllables into jamo.
        wordpiece: cuts words into tokens; a SentencePieceTokenizer has none.
        vocab: the id of each token.
        inv_vocab: the token of each id.
        vocab_size: the largest id + 1, the number of rows that an embedding table needs.
        vocabulary_bytes: the contents of the vocabulary file, unchanged.
        pad_id, unk_id, cls_id, sep_id, mask_id: None for a token that the vocabulary lacks.
    """

    kind: ClassVar[str]
    options_type: ClassVar[type[Options]]
    options: Options
    unknown_candidates: ClassVar[Iterable[str]] = UNKNOWN_WORD
    decomposes: bool = False
    wordpiece: "WordPiece"

    def _use_vocabulary(
        self,
        vocab: dict[str, int],
        vocabulary_bytes: bytes,
        special_tokens: tuple[str, ...] = SPECIAL_TOKENS,
        unknown_becomes_id: int | None = None,
    ) -> None:
        self.vocab = vocab
        self.vocabulary_bytes = vocabulary_bytes
        self.vocab_size = max(vocab.values()) + 1
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            vocab.get(token) for token in special_tokens
        )
        self.inv_vocab = {index: token for token, index in vocab.items()}
        self._unknown_becomes_id = unknown_becomes_id
        self._graph_tokenizer: GraphTokenizer | None = None

    @property
    def do_lower_case(self) -> bool | None:
        """The option `do_lower_case`, which every tokenizer has."""
        return self.options.do_lower_case

    @functools.cached_property
    def written_unknown(self) -> str:
        """The character that `decode` writes for [UNK]; no token contains it."""
        return unknown_character(self.vocab, self.unknown_candidates)

    def tokenize(self, text: str) -> list[str]:
        """Cuts a text into tokens."""
        return [piece for word in self.tokenize_words(text) for piece in word]

    def encode(self, text: str) -> list[int]:
        """Cuts a text into tokens and returns their ids; adds neither [CLS] nor [SEP]."""
        return self.convert_tokens_to_ids(self.tokenize(text))

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Looks up the ids of tokens.

        Raises:
            KeyError: a token is not in the vocabulary, as in google-research/bert. A tokenizer
                that accepts unknown tokens (KoreanTokenizer with strict_vocabulary=False,
                SentencePieceTokenizer) returns the unknown token's id instead.
        """
        vocab, unknown = self.vocab, self._unknown_becomes_id
        if unknown is not None:
            return [vocab.get(token, unknown) for token in tokens]
        try:
            return [vocab[token] for token in tokens]
        except KeyError as error:
            raise KeyError(
                f"token must be in the vocabulary ({len(vocab)} tokens). Received: {error}"
            ) from None

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Looks up the tokens of ids; raises KeyError for an id that no token has."""
        try:
            return [self.inv_vocab[index] for index in ids]
        except KeyError as error:
            raise KeyError(
                f"id must belong to a token, below {self.vocab_size}. Received: {error}"
            ) from None

    def encode_batch(self, texts: Iterable[str]) -> "tf.RaggedTensor":
        """Encodes texts as `encode_words` does, without grouping by word.

        Returns:
            int32 tf.RaggedTensor [B, (tokens)], each row as from `encode`.
        """
        return self.encode_words(texts).merge_dims(1, 2)

    def encode_words(self, texts: Iterable[str]) -> "tf.RaggedTensor":
        """Encodes texts with the TensorFlow graph, which is built on the first call.

        Args:
            texts: an iterable of texts as for `encode`, or a string tensor [B].

        Returns:
            int32 tf.RaggedTensor [B, (words), (tokens)], grouped as by `tokenize_words`.

        Raises:
            InputError: this tokenizer has no graph form (`tf_graph.graph.GraphTokenizer`).
        """
        if self._graph_tokenizer is None:
            import tensorflow as tf

            from tokenization.tf_graph.graph import GraphTokenizer  # here: it imports TensorFlow

            # Its tables must outlive a graph that the first call may be traced in, as in `tf.data`.
            with tf.init_scope():
                self._graph_tokenizer = GraphTokenizer(self)
        return self._graph_tokenizer.encode_words(_as_utf8(texts))

    def encode_with_offsets(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Returns the ids, as from `encode`, and each token's (start, end) in the original text."""
        part = self.encode_part(text)
        return part.ids, part.spans

    def tokenize_words(self, text: str) -> list[list[str]]:
        """Cuts a text into words, each a list of tokens."""
        raise NotImplementedError

    def encode_part(
        self, text: str, follows_mask: bool = False, precedes_mask: bool = False
    ) -> EncodedPart:
        """Encodes a part of a text that contains masks, with each token's span in the part.

        Args:
            text: the part.
            follows_mask: whether a mask is directly before the part. If so, the part begins inside
                a word, as "는" does in "[MASK]는 갔다", unless it begins with a space or with a
                character that is always a word.
            precedes_mask: whether a mask is directly after the part. If so, the last word gets no
                word-end marker unless the part ends with a space.
        """
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_graph_tokenizer": None}  # a graph cannot be pickled

    def _cut_words(
        self, words: list["AlignedText"], continues: bool
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Cuts `AlignedText` words by WordPiece; returns the tokens' ids and spans.

        With `continues`, the first word is cut as the rest of a word if the vocabulary allows it.
        """
        pieces, spans = [], []
        for word in words:
            matched = self.wordpiece.match(word.text, continues)
            if continues and matched[0][0] == UNKNOWN_TOKEN:
                matched = self.wordpiece.match(word.text)
            continues = False
            for piece, start, end in matched:
                pieces.append(piece)
                spans.append((word.spans[start][0], word.spans[end - 1][1]))
        return self.convert_tokens_to_ids(pieces), spans

    def config(self) -> dict[str, Any]:
        """Returns the contents of tokenizer_config.json: the kind and every option."""
        return {"kind": self.kind, **dataclasses.asdict(self.options)}

    def fingerprint(self) -> str:
        """Returns a SHA-256 (hexadecimal) of the vocabulary, the kind and every option."""
        config = json.dumps(self.config(), sort_keys=True).encode("ascii")
        return hashlib.sha256(config + b"\0" + self.vocabulary_bytes).hexdigest()


def listed(texts: Iterable[str]) -> list[str]:
    """Returns texts as a list; refuses a single string, whose characters would be the texts."""
    if isinstance(texts, str | bytes):
        raise InputError(f"texts must be in a list. Received: {texts!r}")
    return list(texts)


def _as_utf8(texts):
    """Converts texts to a string tensor, lone surrogates to U+FFFD; returns a tensor unchanged."""
    import tensorflow as tf

    if tf.is_tensor(texts):
        return texts
    texts = listed(texts)
    try:
        return tf.constant(texts, tf.string)
    except ValueError:  # raised for a lone surrogate
        return tf.constant([re.sub("[\ud800-\udfff]", "\ufffd", t) for t in texts], tf.string)
