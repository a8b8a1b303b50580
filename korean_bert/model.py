"""Defines `Model`, the Python interface of a loaded model.

Shapes: B texts, L layers, T tokens of a text with [CLS] and [SEP], H hidden, E embedding.
"""

import functools
import os
import pickle
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any, overload

import numpy as np

from bert_common.errors import InputError
from bert_common.import_tensorflow import unpickle
from bert_tf.encoder import run_inside
from finetuning.features.extraction import extract
from finetuning.heads import POOLINGS
from finetuning.inputs import SHORTEST, Pair, encode_pairs
from finetuning.results import Prediction
from finetuning.serving.signatures import longest_row
from finetuning.similarity.lexical import known_tokens
from finetuning.similarity.ranking import unit_vectors
from korean_bert.arguments import (
    as_pairs,
    check_count,
    check_layers,
    check_list,
    check_text,
    is_whole,
    shown,
)
from korean_bert.errors import TooManyPiecesError
from korean_bert.guesses import MaskGuesser, guess_words
from korean_bert.masked_text import MASK, encode_masked, with_ends
from korean_bert.neighbours import nearest_pieces
from korean_bert.predictions import TaskPredictor
from korean_bert.results import Attention, Guess, HiddenStates, Hit, Neighbour
from korean_bert.search import (
    METHODS,
    Searchable,
    cosines,
    groups,
    nearest_texts,
    texts_by_words,
)
from korean_bert.vector_graphs import VectorGraphs, same_objects
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import warn_of_untrained_positions
from model_formats.transformers_files.sentence_modules import pooling_of
from tokenization.base import TokenizerInterface
from tokenization.unknown_share import UnknownCounter, flatten

# The default number of texts that `predict` computes together.
BATCH_SIZE = 32

# The most tokens of a guess: trying words of n tokens takes n passes, and few words are longer.
MOST_PIECES = 10


class Model:
    """A model of any kind, made by `korean_bert.load_model`.

    Threads may share it, and pickle sends it to processes.

    Attributes:
        loaded: the `model_formats.loaded_model.LoadedModel`: its Keras model, configuration, labels
            and settings.
        encoder: the `BertModel` or `AlbertModel`.
        max_length: the maximum number of tokens in a row that it was trained on.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.encoder = loaded.model.encoder
        self.max_length = longest_row(loaded)
        self._vectors = VectorGraphs(self.encoder)
        self._has_warned = False  # about a text longer than in training
        self._unknown = UnknownCounter(loaded.tokenizer) if loaded.tokenizer else None
        self._guesser: MaskGuesser | None = None
        self._made_predictor: TaskPredictor | None = None
        self._weights: list[Any] = []  # of the layers that these two were made with
        self._lock = threading.RLock()  # for objects made on first use

    def __reduce__(self) -> tuple[Any, ...]:
        # Keras finds the classes of the networks once their modules are imported.
        classes = type(self.encoder), type(self.loaded.model), type(self)
        return unpickle, (pickle.dumps((*classes, self.loaded)),)

    def __repr__(self) -> str:
        loaded = self.loaded
        return f"<korean_bert.Model {loaded.source}: {loaded.model_type}, {loaded.task}>"

    @property
    def tokenizer(self) -> TokenizerInterface:
        """The model's tokenizer.

        Raises:
            InputError: the folder has no tokenizer, or the tokenizer lacks [CLS] or [SEP].
        """
        tokenizer = self.loaded.tokenizer
        if tokenizer is None:
            raise InputError(
                "a model's folder must hold its tokenizer, or load_model must be given it. "
                f"Received: {self.loaded.folder.path} without it"
            )
        if tokenizer.cls_id is None or tokenizer.sep_id is None:
            raise InputError(
                "a model's vocabulary must have [CLS] and [SEP]. Received: "
                f"{self.loaded.folder.path}, whose vocabulary lacks one"
            )
        return tokenizer

    @functools.cached_property
    def pooling(self) -> str:
        """How `embed` turns a text into one vector: "mean", "cls" or "max".

        It is "mean", unless run_similarity trained the model with a different one, or a folder of
        sentence-transformers says otherwise.

        Raises:
            InputError: see `model_formats.transformers_files.sentence_modules.pooling_of`.
        """
        return pooling_of(self.loaded.settings, self.loaded.folder.path)

    @property
    def num_layers(self) -> int:
        """L, the number of blocks that a text passes through."""
        return self.loaded.config.num_block_calls

    def embed(
        self,
        texts: str | Iterable[str | Pair],
        pooling: str | None = None,
        layers: int | Iterable[int] = -1,
        *,
        batch_size: int | None = None,
        max_length: int | None = None,
    ) -> np.ndarray:
        """Computes vectors of texts; texts of similar length share a batch.

        Args:
            texts: a text, or a list of them; a text may also be a pair, (text, second text).
            pooling: "mean" or "max" over all tokens, [CLS] and [SEP] included, or "cls", the vector
                of [CLS]. None: `self.pooling`; if run_similarity trained vectors of length 1, the
                last layer's vectors have that length.
            layers: one layer or several, counted as in papers: 0 is the embedding output, 1 the
                first layer, -1 the last.
            batch_size: the number of texts computed together. None: as many as make 2,048 tokens.
            max_length: the maximum number of tokens; longer texts are cut off at the end. None: as
                many as the model was trained on. Texts that reach untrained positions cause a
                warning, once per model.

        Returns:
            float32 [B, H]; [B, L, H] for several layers; without B for a single text.

        Raises:
            InputError: an argument has another form.
        """
        as_trained = pooling is None and self.loaded.settings.get("normalize")
        pooling = self.pooling if pooling is None else pooling
        if not isinstance(pooling, str) or pooling not in POOLINGS:
            raise InputError(
                f"pooling must be one of {', '.join(POOLINGS)}. Received: {shown(pooling)}"
            )
        chosen, several = check_layers(layers, self.num_layers + 1)
        batch_size = None if batch_size is None else check_count(batch_size, "batch_size")
        max_length = self._check_max_length(max_length)
        pairs, single = as_pairs(texts)
        self._warn_of_unknown(pairs)
        rows = encode_pairs(self.tokenizer, pairs, max_length or self.max_length)
        self._warn_once(max((len(row.ids) for row in rows), default=0), "the longest text")
        pad_id = self.tokenizer.pad_id or 0
        with self._lock:
            compute = self._vectors.get(chosen, pooling, pad_id)
        vectors = [
            *extract(self.encoder, rows, chosen, pooling, batch_size, pad_id, compute=compute)
        ]
        shape = len(rows), len(chosen), self.loaded.config.hidden_size
        found = np.stack(vectors) if vectors else np.zeros(shape, np.float32)  # [B, L, H]
        last = [layer in (-1, self.num_layers) for layer in chosen]
        if as_trained and any(last):
            found[:, last] = unit_vectors(found[:, last])
        found = found if several else found[:, 0]  # [B, H]
        return found[0] if single else found

    def similarity(self, first: Searchable, second: Searchable) -> np.ndarray | float:
        """Computes the similarity of texts: the cosines of their vectors from `embed`.

        Args:
            first: A texts, or one; or vectors: an array [A, H] or [H], or the `Path` of a .npy.
            second: N texts or vectors.

        Returns:
            float32 [A, N]; a single text has no axis, and two single texts give a number.

        Raises:
            InputError: an argument has the wrong form, or a vector contains NaN or infinity.
        """
        return cosines(self.embed, first, second, self._sizes)

    @overload  # a string is an Iterable of strings too
    def search(  # type: ignore[overload-overlap]
        self, queries: str, corpus: Searchable, top: int = 10, *, method: str = "vectors"
    ) -> list[Hit]: ...

    @overload
    def search(
        self,
        queries: np.ndarray | os.PathLike[str] | Iterable[str],
        corpus: Searchable,
        top: int = 10,
        *,
        method: str = "vectors",
    ) -> list[list[Hit]]: ...

    def search(
        self, queries: Searchable, corpus: Searchable, top: int = 10, *, method: str = "vectors"
    ) -> list[Hit] | list[list[Hit]]:
        """Finds the texts that are most similar to a query.

        The search is exact. It works block by block, so a memory map may be larger than memory.

        Args:
            queries: a text, several, or their vectors, [Q, H].
            corpus: texts, or their vectors: an array [N, H], a memory map or the path of a .npy.
            top: the maximum number of texts to find for a query.
            method: "vectors": by the cosines of the vectors of `embed`. "bm25": by shared tokens,
                weighted by BM25; it needs the extra "finetune" and texts. "hybrid": by the sum of
                both, see `finetuning.similarity.lexical.Bm25.search_with_vectors`.

        Returns:
            For each query a list of `Hit`s, nearest first, ties in the order of the corpus; a
            single list for a single query.

        Raises:
            InputError: an argument has another form.
        """
        top, single = check_count(top, "top"), isinstance(queries, str)
        asked = [queries] if isinstance(queries, str) else queries
        if method not in METHODS:
            raise InputError(
                f"method must be one of {', '.join(METHODS)}. Received: {shown(method)}"
            )
        if method == "vectors":
            found = nearest_texts(self.embed, asked, corpus, top, self._sizes)
        else:
            embed = self.embed if method == "hybrid" else None
            found = texts_by_words(embed, known_tokens(self.tokenizer), asked, corpus, top)
        return found[0] if single else found

    def cluster(self, texts: Searchable, k: int, seed: int = 0) -> np.ndarray:
        """Divides texts into groups by k-means on their vectors, scaled to length 1.

        Args:
            texts: N texts or their vectors, as `search` takes a corpus.
            k: the number of groups, at most N.
            seed: the seed of the random starts.

        Returns:
            int32 [N]: the number of each text's group, from 0.

        Raises:
            InputError: an argument has the wrong form, or the extra "finetune" is missing.
        """
        return groups(self.embed, texts, k, seed)

    @property
    def _sizes(self):
        """The sizes to which trained vectors may be cut."""
        return getattr(self.loaded.model, "sizes", ())

    def _drop_outdated(self):
        """Drops what was made with layers that were replaced or got weights since."""
        weights = self.loaded.model.weights
        if not same_objects(weights, self._weights):
            self._guesser = self._made_predictor = None
            self._weights = weights

    def _check_max_length(self, max_length):
        most = self.loaded.config.max_position_embeddings
        if max_length is None:
            return None
        if not is_whole(max_length) or not SHORTEST <= max_length <= most:
            raise InputError(
                f"max_length must be a whole number from {SHORTEST} to {most}. "
                f"Received: {shown(max_length)}"
            )
        return int(max_length)

    def hidden_states(self, text: str, second: str | None = None) -> HiddenStates:
        """Computes the vectors of a text, or of a pair of texts, in every layer.

        A "[MASK]" in a text is the mask token.
        """
        pieces, spans, inputs = self._row(text, second)
        self._warn_of_unknown([text, second])
        states = run_inside(self.encoder, inputs).hidden_states
        vectors = np.stack([np.asarray(state[0], np.float32) for state in states])  # [L + 1, T, H]
        return HiddenStates(pieces, spans, vectors)

    def attention(self, text: str, second: str | None = None) -> Attention:
        """Computes what the tokens of a text, or of a pair of texts, attend to.

        A "[MASK]" in a text is the mask token.
        """
        pieces, spans, inputs = self._row(text, second)
        self._warn_of_unknown([text, second])
        found = run_inside(self.encoder, inputs, return_probabilities=True).attentions
        probabilities = np.stack([np.asarray(layer[0], np.float32) for layer in found])
        return Attention(pieces, spans, probabilities)

    def fill_mask(
        self,
        text: str,
        top: int = 5,
        *,
        max_pieces: int = 3,
        before_each: Callable[[], None] | None = None,
    ) -> list[list[Guess]]:
        """Guesses a whole word, of one or several tokens, for every [MASK] of a text.

        Args:
            text: a text with at least one "[MASK]". "학교[MASK] 갔다" asks for the rest of a word.
            top: the maximum number of guesses for each.
            max_pieces: the maximum number of tokens in a word, up to 10. 1: a guess is any single
                token of the vocabulary, as in `fill_masks`.
            before_each: a function without arguments that is called before the search for each
                [MASK]; an exception from it ends the search.

        Returns:
            For every [MASK], in order, a list of `Guess`es, most probable first.

        Raises:
            InputError: there is no [MASK], the text is too long, or the model was not trained to
                guess.
        """
        check_text(text, "text")
        top = check_count(top, "top")
        max_pieces = check_count(max_pieces, "max_pieces", MOST_PIECES)
        if before_each is not None and not callable(before_each):
            raise InputError(f"before_each must be a function. Received: {shown(before_each)}")
        tokenizer = self.tokenizer
        if not self.loaded.fills_masks:
            raise InputError(
                "guesses need a pre-trained model with the head for masked words (of an ELECTRA: "
                f"with its generator). Received: {self.loaded.source} ({self.loaded.task})"
            )
        if tokenizer.mask_id is None:
            raise InputError(f"a vocabulary must have {MASK}. Received: one without")
        if MASK not in text:
            raise InputError(f"a text must hold {MASK}. Received: {text!r}")
        self._warn_of_unknown(text)
        encoded = encode_masked(tokenizer, text)
        ids = with_ends(tokenizer, encoded.ids)
        self._check_length(ids)
        places = [place._replace(position=place.position + 1) for place in encoded.places]
        with self._lock:
            self._drop_outdated()
            if self._guesser is None:
                self._guesser = MaskGuesser(self.loaded.model, tokenizer)
            guesser = self._guesser
        return guess_words(guesser, ids, places, top, max_pieces, before_each)

    def nearest(self, word: str, top: int = 10) -> list[Neighbour]:
        """Finds the tokens whose vectors, out of context, are nearest to a word's vector.

        Args:
            word: a word; if it has several tokens, its vector is the mean of theirs.
            top: the maximum number of tokens to find.

        Returns:
            A list of `Neighbour`s, nearest first, without the word's own tokens.

        Raises:
            InputError: the word has no token.
        """
        check_text(word, "word")
        top = check_count(top, "top")
        self._warn_of_unknown(word)
        return nearest_pieces(self.encoder, self.tokenizer, word, top)

    def _predictor(self):
        with self._lock:
            self._drop_outdated()
            if self._made_predictor is None:
                self._made_predictor = TaskPredictor(self.loaded, self.tokenizer, self.max_length)
            return self._made_predictor

    def predict(self, texts: Any, *, batch_size: int = BATCH_SIZE) -> Prediction | list[Prediction]:
        """Predicts the results of texts with a fine-tuned model, as its program does.

        Args:
            texts: one input, or a list of inputs. A classifier takes texts or pairs (text, second
                text), named-entity recognition takes texts, question answering pairs (question,
                text), and multiple choice triples (question, text, options).
            batch_size: the number of inputs computed together.

        Returns:
            For each input a `Classified`, `Tagged`, `Answered` or `Chosen`, see
            `korean_bert.results`; not in a list for a single input.

        Raises:
            InputError: the model is not fine-tuned, or an input has the wrong form.
        """
        batch_size = check_count(batch_size, "batch_size")
        single = isinstance(texts, str | tuple)
        predictor = self._predictor()
        texts = [texts] if single else check_list(texts, predictor.takes)
        self._warn_of_unknown(texts)
        found = predictor(texts, batch_size)
        return found[0] if single else found

    def _check_length(self, ids):
        most = self.loaded.config.max_position_embeddings
        if len(ids) > most:
            raise TooManyPiecesError(
                f"a text must have at most {most} tokens with [CLS] and [SEP]. Received: "
                f"{len(ids)}",
                most,
                len(ids),
            )
        self._warn_once(len(ids), "a text")

    def _warn_once(self, longest, what):
        """Warns about the first text that reaches untrained positions, as the programs do."""
        known = self.loaded.trained_positions
        if known is None or longest <= known or self._has_warned:
            return
        self._has_warned = True
        warn_of_untrained_positions(self.loaded.source, longest, what)

    def _warn_of_unknown(self, texts):
        """Warns once if too much of the first texts that the model gets is [UNK]."""
        counter = self._unknown
        if counter is None:
            return
        counter.add(flatten(texts))
        found = counter.describe()
        if found or counter.is_done:
            self._unknown = None
        if found:
            warnings.warn(found, stacklevel=3)  # the caller's line

    def _row(self, text, second):
        """Returns the tokens, spans, and encoder inputs [1, T] of a text or a pair."""
        check_text(text, "text")
        tokenizer = self.tokenizer
        first, spans, _ = encode_masked(tokenizer, text)
        ids, spans = with_ends(tokenizer, first), [None, *spans, None]
        segment_ids = [0] * len(ids)
        if second is not None:
            other, more, _ = encode_masked(tokenizer, check_text(second, "second"))
            if other:  # else a single text, as for `embed` and `predict`
                ids, spans = [*ids, *other, ids[-1]], [*spans, *more, None]
                segment_ids += [1] * (len(other) + 1)
        self._check_length(ids)
        inputs = {
            "input_ids": np.array([ids], np.int32),
            "segment_ids": np.array([segment_ids], np.int32),
        }
        return tuple(tokenizer.convert_ids_to_tokens(ids)), tuple(spans), inputs
