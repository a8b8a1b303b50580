"""A loaded model, to be asked in Python.

Shapes: B texts, L layers, T pieces of a text with [CLS] and [SEP], H hidden, E embedding.
"""

import functools

import numpy as np

from bert_common.errors import InputError
from bert_tf.encoder import run_inside
from finetuning.features.extraction import extract, pooled_layers
from finetuning.inputs import SHORTEST, encode_pairs
from korean_bert.errors import TooManyPiecesError
from korean_bert.guesses import guess_words
from korean_bert.masked_text import (
    MASK,
    encode_with_masks,
    encode_with_spans,
    masked_places,
)
from korean_bert.neighbours import nearest_pieces
from korean_bert.predictions import TaskPredictor
from korean_bert.results import Attention, HiddenStates
from model_formats.model_folder import warn_of_untrained_positions
from model_formats.saved_model.served_model import ServedModel
from model_formats.saved_model.signatures import longest_row

POOLINGS = ("mean", "cls", "max")

# Texts that `predict` computes together.
BATCH_SIZE = 32


class Model:
    """A model of any kind, made by `korean_bert.load_model`.

    Attributes:
        loaded: the `model_formats.loaded_model.LoadedModel`: its Keras model, configuration, labels
            and settings.
        encoder: the `BertModel` or `AlbertModel`.
        max_length: the most pieces of a row that it was trained on.
    """

    def __init__(self, loaded):
        self.loaded = loaded
        self.encoder = loaded.model.encoder
        self.max_length = longest_row(loaded)
        self._features = None, None  # (layers, pooling), and the graph that computes them
        self._has_warned = False  # of a text that is longer than those of the training

    def __repr__(self):
        loaded = self.loaded
        return f"<korean_bert.Model {loaded.source}: {loaded.model_type}, {loaded.task}>"

    @functools.cached_property
    def tokenizer(self):
        """The model's tokenizer.

        Raises:
            InputError: its folder has none, or it lacks [CLS] or [SEP].
        """
        tokenizer = self.loaded.tokenizer
        if tokenizer is None:
            raise InputError(
                "a model's folder must hold its tokenizer, or load_model must be given it. "
                f"Received: {self.loaded.folder} without"
            )
        if tokenizer.cls_id is None or tokenizer.sep_id is None:
            raise InputError(
                "a model's vocabulary must have [CLS] and [SEP]. Received: that of "
                f"{self.loaded.folder} without"
            )
        return tokenizer

    @property
    def num_layers(self):
        """L: how many blocks a text passes."""
        return self.loaded.config.num_block_calls

    def embed(self, texts, pooling="mean", layers=-1, *, batch_size=None, max_length=None):
        """Turns texts into vectors; texts of about equal length share a batch.

        Args:
            texts: a text, or a list of them; a text may also be a pair, (text, second text).
            pooling: "mean" or "max" over all pieces, [CLS] and [SEP] included, or "cls", the vector
                of [CLS].
            layers: a layer, or several, as papers count them: 0 is the embedding output, 1 the
                first layer, -1 the last.
            batch_size: how many texts are computed together; None: as many as make 2,048 pieces.
            max_length: the most pieces of a text; what is longer loses its end. None: those that
                the model was trained on. With more there is a warning, once for a model, where a
                text has positions that were not trained.

        Returns:
            float32 [B, H]; [B, L, H] of several layers; without B for a single text.

        Raises:
            InputError: an argument is none of these.
        """
        several = not isinstance(layers, int | np.integer)
        chosen = tuple(int(layer) for layer in (layers if several else [layers]))
        self._check_embed(pooling, chosen, max_length)
        pairs, single = as_pairs(texts)
        rows = encode_pairs(self.tokenizer, pairs, max_length or self.max_length)
        self._warn_once(max((len(row.ids) for row in rows), default=0), "the longest text")
        pad_id = self.tokenizer.pad_id or 0
        if self._features[0] != (chosen, pooling):
            compute = functools.partial(pooled_layers, self.encoder, chosen, pooling)
            self._features = (chosen, pooling), ServedModel(self.encoder, compute, pad_id)
        options = {"compute": self._features[1].run}
        vectors = list(extract(self.encoder, rows, chosen, pooling, batch_size, pad_id, **options))
        shape = len(rows), len(chosen), self.loaded.config.hidden_size
        found = np.stack(vectors) if vectors else np.zeros(shape, np.float32)  # [B, L, H]
        found = found if several else found[:, 0]  # [B, H]
        return found[0] if single else found

    def _check_embed(self, pooling, layers, max_length):
        if pooling not in POOLINGS:
            raise InputError(f"pooling must be one of {', '.join(POOLINGS)}. Received: {pooling!r}")
        count = self.num_layers + 1
        if not layers or not all(-count <= layer < count for layer in layers):
            raise InputError(
                f"layers must be from {-count} to {count - 1}, 0 for the embedding output. "
                f"Received: {', '.join(map(str, layers)) or 'none'}"
            )
        most = self.loaded.config.max_position_embeddings
        if max_length is not None and not SHORTEST <= max_length <= most:
            raise InputError(
                f"max_length must be from {SHORTEST} to {most}. Received: {max_length}"
            )

    def hidden_states(self, text, second=None):
        """The vectors of a text, or of a pair of texts, in every layer: `HiddenStates`.

        A "[MASK]" in a text is the mask.
        """
        pieces, spans, inputs = self._row(text, second)
        states = run_inside(self.encoder, inputs).hidden_states
        vectors = np.stack([np.asarray(state[0], np.float32) for state in states])  # [L + 1, T, H]
        return HiddenStates(pieces, spans, vectors)

    def attention(self, text, second=None):
        """What the pieces of a text, or of a pair of texts, attend to: `Attention`.

        A "[MASK]" in a text is the mask.
        """
        pieces, spans, inputs = self._row(text, second)
        found = run_inside(self.encoder, inputs, return_probabilities=True).attentions
        probabilities = np.stack([np.asarray(layer[0], np.float32) for layer in found])
        return Attention(pieces, spans, probabilities)

    def fill_mask(self, text, top=5, *, max_pieces=3):
        """Guesses what stands at every [MASK] of a text: whole words, of one piece or several.

        Args:
            text: with "[MASK]" at least once. "학교[MASK] 갔다" asks for the rest of a word.
            top: how many guesses for each, at most.
            max_pieces: the most pieces of a word. With 1 a guess is any single piece of the
                vocabulary, as `fill_masks` shows them.

        Returns:
            For every [MASK], in order, a list of `Guess`es, the most probable first.

        Raises:
            InputError: there is no [MASK], the text is too long, or the model was not trained to
                guess.
        """
        tokenizer = self.tokenizer
        if self.loaded.task != "pretraining" or self.loaded.lacks("cls/predictions/"):
            raise InputError(
                "fill_mask needs a pre-trained model with its masked-language-model head. "
                f"Received: {self.loaded.source} ({self.loaded.task})"
            )
        if tokenizer.mask_id is None:
            raise InputError(f"a vocabulary must have {MASK}. Received: one without")
        if MASK not in text:
            raise InputError(f"a text must hold {MASK}. Received: {text!r}")
        if min(top, max_pieces) < 1:
            raise InputError(
                f"top and max_pieces must be at least 1. Received: {top} and {max_pieces}"
            )
        ids = encode_with_masks(tokenizer, text)
        self._check_length(ids)
        places = masked_places(tokenizer, text)
        return guess_words(self.loaded.model, tokenizer, ids, places, top, max_pieces)

    def nearest(self, word, top=10):
        """The pieces of the vocabulary whose vectors, out of context, are nearest to a word's.

        Args:
            word: a word; of several pieces it has the mean of their vectors.
            top: how many, at most.

        Returns:
            A list of `Neighbour`s, the nearest first; the word's own pieces are not among them.

        Raises:
            InputError: the word has no piece.
        """
        return nearest_pieces(self.encoder, self.tokenizer, word, top)

    @functools.cached_property
    def _predictor(self):
        return TaskPredictor(self.loaded, self.tokenizer, self.max_length)

    def predict(self, texts, *, batch_size=BATCH_SIZE):
        """What a fine-tuned model says of texts, as its program writes it.

        Args:
            texts: one or a list of what the model was trained on. A classifier takes texts or pairs
                (text, second text), a model for named entities texts, one that answers questions
                pairs (question, text), one for multiple choice triples (question, text, options).
            batch_size: how many are computed together.

        Returns:
            For each a `Classified`, a `Tagged`, an `Answered` or a `Chosen`, see
            `korean_bert.results`; without a list for a single text.

        Raises:
            InputError: the model is not fine-tuned, or a text is of another form.
        """
        single = isinstance(texts, str | tuple)
        found = self._predictor([texts] if single else texts, batch_size)
        return found[0] if single else found

    def _check_length(self, ids):
        most = self.loaded.config.max_position_embeddings
        if len(ids) > most:
            raise TooManyPiecesError(
                f"a text must have at most {most} pieces with [CLS] and [SEP]. Received: "
                f"{len(ids)}",
                most,
                len(ids),
            )
        self._warn_once(len(ids), "a text")

    def _warn_once(self, longest, what):
        """Warns of the first text with positions that were not trained, as the programs do."""
        known = self.loaded.trained_positions
        if not self._has_warned and known is not None and longest > known:
            self._has_warned = True
            warn_of_untrained_positions(self.loaded.source, longest, what)

    def _row(self, text, second):
        """Pieces, spans, and the encoder's inputs [1, T] of a text or a pair."""
        tokenizer = self.tokenizer
        first, spans = encode_with_spans(tokenizer, text)
        ids, spans = [tokenizer.cls_id, *first, tokenizer.sep_id], [None, *spans, None]
        segment_ids = [0] * len(ids)
        if second is not None:
            other, more = encode_with_spans(tokenizer, second)
            ids, spans = [*ids, *other, tokenizer.sep_id], [*spans, *more, None]
            segment_ids += [1] * (len(other) + 1)
        self._check_length(ids)
        inputs = {
            "input_ids": np.array([ids], np.int32),
            "segment_ids": np.array([segment_ids], np.int32),
        }
        return tuple(tokenizer.convert_ids_to_tokens(ids)), tuple(spans), inputs


def as_pairs(texts):
    """Texts and pairs as a list of (text, second text or None), and whether it was a single one.

    Raises:
        InputError: something is neither a text nor a pair.
    """
    if isinstance(texts, str):
        return [(texts, None)], True
    pairs = []
    for text in texts:
        pair = (text, None) if isinstance(text, str) else text
        kinds = [type(part) for part in pair] if isinstance(pair, tuple | list) else []
        if kinds not in ([str, str], [str, type(None)]):
            raise InputError(f"a text must be a string, or a pair of them. Received: {text!r}")
        pairs.append(tuple(pair))
    return pairs, False
