"""What every tokenizer derives from its words, its vocabulary, its configuration."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping

from bert_common.errors import InputError
from tokenization.decoding import unknown_character
from tokenization.vocabulary import SPECIAL_TOKENS

# What the repetitions of a regular expression can count to.
LARGEST_COUNT = 2**31 - 1


class TokenizerInterface:
    """The methods that FullTokenizer, KoreanTokenizer, SentencePieceTokenizer share.

    A tokenizer defines `tokenize_words` with `config`, then calls `_use_vocabulary` once.

    Attributes:
        vocab: the id of each token.
        vocab_size: the largest id + 1, which is what an embedding table needs.
        vocabulary_bytes: the vocabulary file, unchanged.
        pad_id, unk_id, cls_id, sep_id, mask_id: None where the vocabulary has no such token.
    """

    def _use_vocabulary(
        self,
        vocab: dict[str, int],
        vocabulary_bytes: bytes,
        special_tokens: tuple = SPECIAL_TOKENS,
        unknown_becomes_id: int | None = None,
    ) -> None:
        self.vocab = vocab
        self.vocabulary_bytes = vocabulary_bytes
        self.vocab_size = max(vocab.values()) + 1
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = (
            vocab.get(token) for token in special_tokens
        )
        self._tokens_by_id = {index: token for token, index in vocab.items()}
        self._unknown_becomes_id = unknown_becomes_id
        self._written_unknown = None
        self._graph_tokenizer = None

    @property
    def written_unknown(self) -> str:
        """The character that `decode` writes for [UNK]; no token holds it."""
        if self._written_unknown is None:
            self._written_unknown = unknown_character(self.vocab)
        return self._written_unknown

    def tokenize(self, text: str) -> list[str]:
        """Cuts a text into pieces."""
        return [piece for word in self.tokenize_words(text) for piece in word]

    def encode(self, text: str) -> list[int]:
        """Cuts a text into pieces, returns their ids; adds no [CLS], no [SEP]."""
        return self.convert_tokens_to_ids(self.tokenize(text))

    def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
        """Looks up ids.

        Raises:
            KeyError: a token is not in the vocabulary, as in google-research/bert. A tokenizer
                that lets unknown tokens pass (KoreanTokenizer with strict_vocabulary=False,
                SentencePieceTokenizer) gives the unknown token's id instead.
        """
        vocab, unknown = self.vocab, self._unknown_becomes_id
        if unknown is not None:
            return [vocab.get(token, unknown) for token in tokens]
        try:
            return [vocab[token] for token in tokens]
        except KeyError as error:
            raise KeyError(
                f"Token must be in the vocabulary ({len(vocab)} tokens). Received: {error}"
            ) from None

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """Looks up tokens; KeyError for an id that no token has."""
        try:
            return [self._tokens_by_id[index] for index in ids]
        except KeyError as error:
            raise KeyError(
                f"Id must belong to a token, below {self.vocab_size}. Received: {error}"
            ) from None

    def encode_batch(self, texts: Iterable[str]):
        """Encodes texts by the graph form, which is made at the first call.

        Args:
            texts: as for `encode`; or a string tensor [B].

        Returns:
            int32 tf.RaggedTensor [B, (pieces)], rows as `encode` gives them.

        Raises:
            InputError: this tokenizer has no graph form (`tf_graph.graph.GraphTokenizer`).
        """
        return self._graph().encode_batch(_as_utf8(texts))

    def encode_words(self, texts: Iterable[str]):
        """Encodes texts by the graph form, pieces grouped as `tokenize_words` groups them.

        Args:
            texts: as for `encode`; or a string tensor [B].

        Returns:
            int32 tf.RaggedTensor [B, (words), (pieces)].

        Raises:
            InputError: this tokenizer has no graph form.
        """
        return self._graph().encode_words(_as_utf8(texts))

    def _graph(self):
        if self._graph_tokenizer is None:
            from tokenization.tf_graph.graph import GraphTokenizer  # here: it imports TensorFlow

            self._graph_tokenizer = GraphTokenizer(self)
        return self._graph_tokenizer

    def __getstate__(self) -> dict:
        return self.__dict__ | {"_graph_tokenizer": None}  # a graph cannot be pickled

    def _ids_and_spans(self, words: list) -> tuple[list[int], list[tuple[int, int]]]:
        """Returns the ids and the spans of the pieces of `Aligned` words, each cut by WordPiece."""
        pieces, spans = [], []
        for word in words:
            for piece, start, end in self.wordpiece.match(word.text):
                pieces.append(piece)
                spans.append((word.spans[start][0], word.spans[end - 1][1]))
        return self.convert_tokens_to_ids(pieces), spans

    def fingerprint(self) -> str:
        """Returns a SHA-256 (hexadecimal) that differs when a switch or the vocabulary does."""
        config = json.dumps(self.config(), sort_keys=True).encode("ascii")
        return hashlib.sha256(config + b"\0" + self.vocabulary_bytes).hexdigest()


def _as_utf8(texts):
    """Texts as bytes, lone surrogates as U+FFFD; a tensor as it is."""
    if hasattr(texts, "dtype"):
        return texts
    import tensorflow as tf

    texts = list(texts)
    try:
        return tf.constant(texts, tf.string)
    except ValueError:  # what TensorFlow says of a lone surrogate
        return tf.constant([re.sub("[\ud800-\udfff]", "\ufffd", t) for t in texts], tf.string)


def check_switches(switches: Mapping, allowed: Mapping, where: str) -> None:
    """Checks a tokenizer's switches by name, by value.

    Args:
        switches: the value of each switch.
        allowed: for each switch its possible values, or `str` for any string that UTF-8 can
            write, `int` for any whole number that regular expressions can count to.
        where: what the switches were read from, for the message.

    Raises:
        InputError: an unknown switch, or a value that is not among those allowed.
    """
    for name, value in switches.items():
        if name not in allowed:
            raise InputError(
                f"{where}: a switch must be one of {', '.join(sorted(allowed))}. Received: {name!r}"
            )
        choices = allowed[name]
        if choices is str:
            # JSON's lone surrogates have become U+FFFD, which no text has once it is cleaned.
            valid = isinstance(value, str) and not re.search("[\ud800-\udfff\ufffd]", value)
            must = "a string without lone surrogates and U+FFFD"
        elif choices is int:
            valid = type(value) is int and 0 <= value <= LARGEST_COUNT
            must = f"a whole number from 0 to {LARGEST_COUNT}"
        else:
            # Types are compared too, since 1 == True.
            valid = any(type(value) is type(choice) and value == choice for choice in choices)
            must = "one of " + ", ".join(map(json.dumps, choices))
        if not valid:
            raise InputError(f"{where}: {name} must be {must}. Received: {value!r}")
