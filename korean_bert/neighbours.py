"""Finds the tokens of a vocabulary that resemble a word, by their vectors out of context.

Shapes: V tokens of the vocabulary, E embedding.
"""

import keras
import numpy as np

from finetuning.features.extraction import word_vectors
from korean_bert.results import Neighbour
from tokenization.base import TokenizerInterface
from tokenization.vocabulary import is_special


def nearest_pieces(
    encoder: keras.Model, tokenizer: TokenizerInterface, word: str, top: int
) -> list[Neighbour]:
    """Returns at most `top` neighbours of a word by cosine similarity, nearest first.

    The word's own tokens and special tokens are left out.
    """
    vector = word_vectors(encoder, tokenizer, [word])[0]  # [E]
    own = set(tokenizer.encode(word))
    ids = [
        index
        for index, token in sorted(tokenizer.inv_vocab.items())
        if index not in own and not is_special(token)
    ]
    table = np.asarray(encoder.embeddings.word_embeddings)[ids]  # [V, E]
    lengths = np.linalg.norm(table, axis=1) * np.linalg.norm(vector)  # [V]
    cosines = table @ vector / np.maximum(lengths, np.finfo(np.float32).tiny)
    best = np.argsort(-cosines, kind="stable")[:top]
    return [Neighbour(tokenizer.inv_vocab[ids[i]], float(cosines[i])) for i in best]
