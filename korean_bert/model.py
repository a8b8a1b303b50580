"""A loaded model, to be asked in Python.

Shapes: B texts, L layers, T tokens of a text with [CLS] and [SEP], H hidden, E embedding.
"""

import functools
import os
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any, overload

import numpy as np

from bert_common.errors import InputError
from bert_tf.encoder import run_inside
from finetuning.features.extraction import extract, pooled_layers
from finetuning.inputs import SHORTEST, Pair, encode_pairs
from finetuning.results import Prediction
from finetuning.serving.served_model import ServedModel
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
from model_formats.loaded_model import LoadedModel
from model_formats.model_folder import warn_of_untrained_positions
from model_formats.transformers_files.sentence_modules import pooling_of
from tokenization.base import TokenizerInterface
from tokenization.unknown_share import UnknownCounter, flatten

POOLINGS = ("mean", "cls", "max")

# Texts that `predict` computes together.
BATCH_SIZE = 32

# Pieces of a guess: each one more takes as many passes more, and words are seldom longer.
MOST_PIECES = 10

# Graphs that `embed` keeps, one for each choice of pooling and layers: making one takes seconds.
# Each holds the weights once more.
MOST_GRAPHS = 4


class Model:
    """A model of any kind, made by `korean_bert.load_model`.

    Several threads may call its methods at the same time.

    Attributes:
        loaded: the `model_formats.loaded_model.LoadedModel`: its Keras model, configuration, labels
            and settings.
        encoder: the `BertModel` or `AlbertModel`.
        max_length: the most tokens of a row that it was trained on.
    """

    def __init__(self, loaded: LoadedModel) -> None:
        self.loaded = loaded
        self.encoder = loaded.model.encoder
        self.max_length = longest_row(loaded)
        # (layers, pooling) -> the graph that computes them, the last used last
        self._graphs: dict[tuple[tuple[int, ...], str], Any] = {}
        self._has_warned = False  # of a text longer than the training's
        self._unknown = UnknownCounter(loaded.tokenizer) if loaded.tokenizer else None
        self._guesser: MaskGuesser | None = None
        self._made_predictor: TaskPredictor | None = None
        self._lock = threading.RLock()  # of the members above, and of what is made at first use

    def __repr__(self) -> str:
        loaded = self.loaded
        return f"<korean_bert.Model {loaded.source}: {loaded.model_type}, {loaded.task}>"

    @property
    def tokenizer(self) -> TokenizerInterface:
        """The model's tokenizer.

        Raises:
            InputError: its folder has none, or it lacks [CLS] or [SEP].
        """
        tokenizer = self.loaded.tokenizer
        if tokenizer is None:
            raise InputError(
                "a model's folder must hold its tokenizer, or load_model must be given it. "
                f"Received: {self.loaded.folder.path} without"
            )
        if tokenizer.cls_id is None or tokenizer.sep_id is None:
            raise InputError(
                "a model's vocabulary must have [CLS] and [SEP]. Received: "
                f"{self.loaded.folder.path}, whose vocabulary lacks one"
            )
        return tokenizer

    @functools.cached_property
    def pooling(self) -> str:
        """The way in which `embed` makes one vector of a text: "mean", "cls" or "max".

        It is "mean", unless run_similarity trained the model with another one, or the folder is one
        of sentence-transformers that says otherwise.

        Raises:
            InputError: as `model_formats.transformers_files.sentence_modules.pooling_of`.
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
        """Turns texts into vectors; texts of about equal length share a batch.

        Args:
            texts: a text, or a list of them; a text may also be a pair, (text, second text).
            pooling: "mean" or "max" over all tokens, [CLS] and [SEP] included, or "cls", the vector
                of [CLS]. None: `self.pooling`; if run_similarity trained vectors of length 1, the
                last layer's vectors have that length.
            layers: a layer, or several, as papers count them: 0 is the embedding output, 1 the
                first layer, -1 the last.
            batch_size: how many texts are computed together; None: as many as make 2,048 tokens.
            max_length: the most tokens of a text; a longer text loses its end. None: as many as
                the model was trained on. With more it warns, once for a model, of a text with
                positions that were not trained.

        Returns:
            float32 [B, H]; [B, L, H] of several layers; without B for a single text.

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
        options = {"compute": self._graph(chosen, pooling, pad_id)}
        vectors = list(extract(self.encoder, rows, chosen, pooling, batch_size, pad_id, **options))
        shape = len(rows), len(chosen), self.loaded.config.hidden_size
        found = np.stack(vectors) if vectors else np.zeros(shape, np.float32)  # [B, L, H]
        last = [layer in (-1, self.num_layers) for layer in chosen]
        if as_trained and any(last):
            found[:, last] = unit_vectors(found[:, last])
        found = found if several else found[:, 0]  # [B, H]
        return found[0] if single else found

    def similarity(self, first: Searchable, second: Searchable) -> np.ndarray | float:
        """Computes how alike texts are: the cosines of the vectors of `embed`.

        Args:
            first: A texts, or one; or vectors, an array [A, H] or [H], or the `Path` of a .npy.
            second: N texts or vectors.

        Returns:
            float32 [A, N]; a single text has no axis, and two single texts give a number.

        Raises:
            InputError: an argument has another form, or a vector NaN or infinity.
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
        """Finds the texts that are most like a query.

        The search is exact. It works block by block, so a memory map may be larger than memory.

        Args:
            queries: a text, several, or their vectors, [Q, H].
            corpus: texts, or their vectors: an array [N, H], a memory map, the path of a .npy.
            top: how many to find for a query, at most.
            method: "vectors": by the cosines of the vectors of `embed`. "bm25": by shared tokens,
                weighted by BM25; it needs the extra "finetune" and texts. "hybrid": by the sum of
                both, as `finetuning.similarity.lexical.Bm25.search_with_vectors`.

        Returns:
            For each query a list of `Hit`s, the nearest first, of equal ones the first; one such
            list for a single query.

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
        """Divides texts into groups: k-means on their vectors, scaled to length 1.

        Args:
            texts: N texts or their vectors, as `search` takes a corpus.
            k: how many groups, at most N.
            seed: of the random starts.

        Returns:
            int32 [N]: the number of each text's group, from 0.

        Raises:
            InputError: an argument has another form, or the extra "finetune" is missing.
        """
        return groups(self.embed, texts, k, seed)

    @property
    def _sizes(self):
        """The sizes that vectors were trained to be cut to."""
        return getattr(self.loaded.model, "sizes", ())

    def _graph(self, layers, pooling, pad_id):
        """The function that pools layers of a batch; the few functions used last are kept."""
        key = layers, pooling
        with self._lock:
            graph = self._graphs.pop(key, None)
            if graph is None:
                compute = functools.partial(pooled_layers, self.encoder, layers, pooling)
                graph = ServedModel(self.encoder, compute, pad_id).run
                graph.get_concrete_function()  # traced once, by the first that needs it
            self._graphs[key] = graph
            while len(self._graphs) > MOST_GRAPHS:
                del self._graphs[next(iter(self._graphs))]
        return graph

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
        """Computes the vectors of a text, or of a pair of texts, in every layer: `HiddenStates`.

        A "[MASK]" in a text is the mask.
        """
        pieces, spans, inputs = self._row(text, second)
        self._warn_of_unknown([text, second])
        states = run_inside(self.encoder, inputs).hidden_states
        vectors = np.stack([np.asarray(state[0], np.float32) for state in states])  # [L + 1, T, H]
        return HiddenStates(pieces, spans, vectors)

    def attention(self, text: str, second: str | None = None) -> Attention:
        """Computes what the tokens of a text, or of a pair of texts, attend to: `Attention`.

        A "[MASK]" in a text is the mask.
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
        """Guesses what stands at every [MASK] of a text: whole words, of one token or several.

        Args:
            text: with "[MASK]" at least once. "학교[MASK] 갔다" asks for the rest of a word.
            top: how many guesses for each, at most.
            max_pieces: the most tokens of a word, at most 10. With 1 a guess is any single token of
                the vocabulary, as `fill_masks` shows them.
            before_each: a function without arguments that is called before each [MASK] is searched
                for; what it raises ends the search.

        Returns:
            For every [MASK], in order, a list of `Guess`es, the most probable first.

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
                "fill_mask needs a pre-trained model with its masked-language-model head. "
                f"Received: {self.loaded.source} ({self.loaded.task})"
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
            if self._guesser is None:
                self._guesser = MaskGuesser(self.loaded.model, tokenizer)
        return guess_words(self._guesser, ids, places, top, max_pieces, before_each)

    def nearest(self, word: str, top: int = 10) -> list[Neighbour]:
        """Finds the vocabulary's tokens whose vectors, out of context, are nearest to a word's.

        Args:
            word: a word; of several tokens it has the mean of their vectors.
            top: how many, at most.

        Returns:
            A list of `Neighbour`s, the nearest first; the word's own tokens are not among them.

        Raises:
            InputError: the word has no token.
        """
        check_text(word, "word")
        top = check_count(top, "top")
        self._warn_of_unknown(word)
        return nearest_pieces(self.encoder, self.tokenizer, word, top)

    def _predictor(self):
        with self._lock:
            if self._made_predictor is None:
                self._made_predictor = TaskPredictor(self.loaded, self.tokenizer, self.max_length)
            return self._made_predictor

    def predict(self, texts: Any, *, batch_size: int = BATCH_SIZE) -> Prediction | list[Prediction]:
        """Predicts texts with a fine-tuned model, as its program does.

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
        """Warns of the first text with positions that were not trained, as the programs do."""
        known = self.loaded.trained_positions
        if known is None or longest <= known:
            return
        with self._lock:
            is_first, self._has_warned = not self._has_warned, True
        if is_first:
            warn_of_untrained_positions(self.loaded.source, longest, what)

    def _warn_of_unknown(self, texts):
        """Warns once if much of the first texts that the model is asked about is [UNK]."""
        if self._unknown is None:
            return
        with self._lock:
            counter, found = self._unknown, None
            if counter is not None:
                counter.add(flatten(texts))
                found = counter.describe()
                if found or counter.is_done:
                    self._unknown = None
        if found:
            warnings.warn(found, stacklevel=3)  # the line that asks

    def _row(self, text, second):
        """Tokens, spans, and the encoder's inputs [1, T] of a text or a pair."""
        check_text(text, "text")
        tokenizer = self.tokenizer
        first, spans, _ = encode_masked(tokenizer, text)
        ids, spans = with_ends(tokenizer, first), [None, *spans, None]
        segment_ids = [0] * len(ids)
        if second is not None:
            check_text(second, "second")
            other, more, _ = encode_masked(tokenizer, second)
            ids, spans = [*ids, *other, ids[-1]], [*spans, *more, None]
            segment_ids += [1] * (len(other) + 1)
        self._check_length(ids)
        inputs = {
            "input_ids": np.array([ids], np.int32),
            "segment_ids": np.array([segment_ids], np.int32),
        }
        return tuple(tokenizer.convert_ids_to_tokens(ids)), tuple(spans), inputs
