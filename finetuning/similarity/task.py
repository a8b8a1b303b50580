"""Defines the task of run_similarity: text vectors whose cosines say how similar the texts are.

Shapes: N examples, S texts of an example, H hidden.
"""

import dataclasses
import functools
import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
import numpy as np

from bert_common.errors import InputError
from finetuning.class_report import write_columns
from finetuning.downstream_task import DownstreamTask
from finetuning.examples import Examples, Outputs
from finetuning.inputs import encode_pairs, pad_rows
from finetuning.metrics import score
from finetuning.readers import check_members, check_strings
from finetuning.results import Classified
from finetuning.shares import Sources
from finetuning.similarity.collection import of_pairs
from finetuning.similarity.data import SimilarityDataset, SimilarityExample
from finetuning.similarity.head import TEMPERATURE, SentenceEncoder
from finetuning.similarity.lexical import TfIdf, search_tf_idf
from finetuning.similarity.losses import NO_TEXT, SCORE_WEIGHTS, SCORES, TEXT_NUMBERS, WEIGHTS
from finetuning.similarity.ranking import DEEPEST, rank_measures, search, unit_vectors
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel

CORRELATIONS = ("spearman", "pearson")


@dataclasses.dataclass(frozen=True)
class Similarity(DownstreamTask):
    """The task of run_similarity."""

    dataset: SimilarityDataset
    tokenizer: TokenizerInterface  # the model's
    max_length: int  # maximum tokens in a text
    # As for `SentenceEncoder`:
    pooling: str = "mean"
    normalize: bool = True
    sizes: tuple[int, ...] = ()
    objective: str = "ranking"
    temperature: float = TEMPERATURE
    freeze_embeddings: bool = False
    on_train_part: bool = False  # whether a part of train chooses the best checkpoint, not dev

    @property
    def best_by(self) -> tuple[str, bool]:
        splits = self.dataset.splits
        # If vectors cannot be measured on dev, training examples are held out.
        split = "dev" if splits.get("dev") and not self.on_train_part else "train"
        scored = split not in splits or self.dataset.form(split).scored
        # Not recall@1, which is equal for many checkpoints if queries are few.
        return ("eval_spearman" if scored else "eval_mrr_at_10"), True

    @property
    def rows(self) -> int:
        """The number of texts in an encoded example, at least 2."""
        most = max((self.dataset.form(split).texts for split in self.dataset.sources), default=1)
        return max(2, most)

    @classmethod
    def of_model(
        cls, loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int
    ) -> Self:
        """Makes the task of a fine-tuned model, for a user's texts instead of a data set."""
        return cls(SimilarityDataset("", {}), tokenizer, max_length)

    def make_model(self, encoder: keras.Model) -> SentenceEncoder:
        """Makes the `SentenceEncoder` of an encoder."""
        return SentenceEncoder(
            encoder,
            self.pooling,
            self.normalize,
            self.sizes,
            training=self.objective,
            temperature=self.temperature,
            freeze_embeddings=self.freeze_embeddings,
        )

    def read_input(self, name: str, value: Any) -> SimilarityExample:
        """Makes a raw example of a user's input; raises TypeError or ValueError if malformed."""
        first, second = check_members(value)
        return SimilarityExample(name, check_strings(first, second))

    def encode(self, raw: Sequence[SimilarityExample], training: bool) -> Examples:
        """Encodes examples; for training by simcse, every text becomes an example of itself twice.

        So does a single text if training has several files. An example with fewer texts than
        others is filled up with empty texts, whose number is `NO_TEXT`.
        """
        if training and self.objective == "simcse":
            raw = _texts_twice(raw)
        elif training and self.dataset.parts:
            raw = [e._replace(texts=e.texts * 2) if len(e.texts) == 1 else e for e in raw]
        texts = [*dict.fromkeys(text for example in raw for text in example.texts), ""]
        rows = encode_pairs(self.tokenizer, [(text, None) for text in texts], self.max_length)
        numbers = {text: number for number, text in enumerate(texts)}
        most = max((len(example.texts) for example in raw), default=0)
        of_texts = np.full((len(raw), most), NO_TEXT, np.int32)  # [N, S]; the last row is empty
        for own, example in zip(of_texts, raw, strict=True):
            own[: len(example.texts)] = [numbers[text] for text in example.texts]
        scores, scored = scaled_scores(raw), np.array([e.score is not None for e in raw])  # [N]

        def make_batch(indices: np.ndarray, length: int) -> dict[str, np.ndarray]:
            chosen = of_texts[indices]  # [B, S]
            flat = pad_rows([rows[i] for i in chosen.ravel()], length, self.tokenizer.pad_id or 0)
            batch = {n: v.reshape(*chosen.shape, length) for n, v in flat.items()}  # [B, S, T]
            batch[WEIGHTS] = np.ones(len(indices), np.float32)
            # float32, as sums over devices are in float32; integers up to 2**24 are exact.
            batch[TEXT_NUMBERS] = chosen.astype(np.float32)
            if training and self.objective == "both":
                batch[SCORE_WEIGHTS] = scored[indices].astype(np.float32)
                batch[WEIGHTS] -= batch[SCORE_WEIGHTS]
            return batch if scores is None else {**batch, SCORES: scores[indices]}

        lengths = np.array([len(row.ids) for row in rows])[of_texts].max(axis=1)  # [N]
        sources = self._sources(raw) if training and self.dataset.parts else None
        return Examples(lengths, make_batch, [e.id for e in raw], raw, sources=sources)

    def _sources(self, raw: Sequence[SimilarityExample]) -> Sources:
        """Returns the `Sources` of training examples from several files.

        Raises:
            InputError: no example of a file is left.
        """
        numbers = np.array([example.source for example in raw], np.int32)  # [N]
        counts = np.bincount(numbers, minlength=len(self.dataset.parts))
        if not counts.all():
            name = self.dataset.parts[int(np.argmin(counts))].name
            raise InputError(f"--max_train_examples must leave some of each file. Received: {name}")
        shares = np.array(self.dataset.shares or counts, np.float64)
        shares /= shares.sum()
        shown = zip(shares, self.dataset.part_names, strict=True)
        print(f"batches: {', '.join(f'{share:.1%} of {name}' for share, name in shown)}")
        return Sources(numbers, tuple(shares.tolist()))

    def read_outputs(self, examples: Examples, outputs: Outputs) -> list[Classified]:
        """Returns the cosine of each pair, as a score."""
        vectors = unit_vectors(np.stack(outputs["vectors"]))  # [N, 2, H]
        cosines = np.sum(vectors[:, 0] * vectors[:, 1], axis=-1)  # [N]
        return [Classified(float(cosine), {}) for cosine in cosines]

    def measure(
        self, model: SentenceEncoder, examples: Examples, outputs: Outputs
    ) -> dict[str, float]:
        """Computes the measures that suit the form of the examples, at every size of the vectors.

        For scored pairs, they are the correlations of cosines and scores. For others, they are the
        `rank_measures` of a first text's partners among all second texts of the split and, for
        triples, the share whose partner is nearer than the third text. "tf_idf_..." are the
        correlations or `rank_measures` of TF-IDF weights. Names of sizes below H end in the size.
        """
        vectors = np.stack(outputs["vectors"])  # [N, S, H]
        results: dict[str, float] = {}
        for size in model.sizes:
            part = unit_vectors(vectors[..., :size])
            ending = "" if size == vectors.shape[-1] else f"_{size}"
            found = _measure_vectors(examples.raw, part)
            results |= {f"{name}{ending}": value for name, value in found.items()}
        return results | {f"tf_idf_{n}": v for n, v in _measure_tf_idf(examples).items()}

    def write_predictions(
        self, directory: str, split: str, examples: Examples, outputs: Outputs
    ) -> list[str]:
        """Writes predictions_SPLIT.tsv: id, texts, score if any, cosines of the first text."""
        path = os.path.join(directory, f"predictions_{split}.tsv")
        raw, vectors = examples.raw, unit_vectors(np.stack(outputs["vectors"]))  # [N, S, H]
        cosines = np.einsum("nh,nsh->ns", vectors[:, 0], vectors[:, 1:])  # [N, S - 1]
        columns = [("id", [e.id for e in raw]), ("text", [e.text for e in raw])]
        most = cosines.shape[1]
        for place, name in enumerate(("second", "third")[:most], 1):
            columns.append((name, [e.texts[place] if place < len(e.texts) else "" for e in raw]))
        if any(e.score is not None for e in raw):
            columns.append(("score", ["" if e.score is None else str(e.score) for e in raw]))
        for place, name in enumerate(("cosine", "cosine_third")[:most], 1):
            pairs = zip(raw, cosines[:, place - 1], strict=True)
            columns.append((name, [f"{c:.6f}" if place < len(e.texts) else "" for e, c in pairs]))
        write_columns(path, columns)
        return [path]


def scaled_scores(raw: Sequence[SimilarityExample]) -> np.ndarray | None:
    """Scales scores to cosines, float32 [N]; 0 for a missing score, None if all are missing.

    The highest score of a file, rounded up, becomes 1, so scores from 0 to 5 are divided by 5.
    """
    highest: dict[int, float] = {}
    for example in raw:
        if example.score is not None:
            highest[example.source] = max(highest.get(example.source, 0.0), example.score)
    if not highest:
        return None
    largest = {source: max(1, math.ceil(score)) for source, score in highest.items()}
    scores = [(example.score or 0.0) / largest.get(example.source, 1) for example in raw]
    return np.array(scores, np.float32)


def _texts_twice(raw: Sequence[SimilarityExample]) -> list[SimilarityExample]:
    """Makes an example of every distinct text of each file, as its own partner."""
    every = dict.fromkeys((example.source, text) for example in raw for text in example.texts)
    return [
        SimilarityExample(str(i), (text, text), source=source)
        for i, (source, text) in enumerate(every)
    ]


def _measure_vectors(raw: Sequence[SimilarityExample], vectors: np.ndarray) -> dict[str, float]:
    """Computes the measures of vectors of length 1, [N, S, H]."""
    cosines = np.einsum("nh,nsh->ns", vectors[:, 0], vectors[:, 1:])  # [N, S - 1]
    if raw[0].score is not None:
        return score(CORRELATIONS, np.array([e.score for e in raw]), cosines[:, 0])
    collection = of_pairs([(e.texts[0], e.texts[1]) for e in raw])
    first, second = ({e.texts[side]: i for i, e in enumerate(raw)} for side in (0, 1))
    queries = vectors[[first[text] for text in collection.queries], 0]  # [Q, H]
    corpus = vectors[[second[text] for text in collection.corpus], 1]
    found = search(queries, corpus, DEEPEST)
    measures = rank_measures(found.places, collection.relevant)
    if cosines.shape[1] > 1:  # triples: the share of partners nearer than the third text
        measures["triple_accuracy"] = float(np.mean(cosines[:, 0] > cosines[:, 1]))
    return measures


@functools.lru_cache(maxsize=4)
def _measure_tf_idf(examples: Examples) -> dict[str, float]:
    """Computes the measures of `TfIdf`, learned from the examples' own texts, once per split."""
    raw = examples.raw
    if raw[0].score is None:
        pairs = of_pairs([(e.texts[0], e.texts[1]) for e in raw])
        found = search_tf_idf(pairs.queries, pairs.corpus, DEEPEST)
        return rank_measures(found.places, pairs.relevant)
    first, second = ([e.texts[side] for e in raw] for side in (0, 1))
    vectors = TfIdf(first + second)
    products = vectors(first).multiply(vectors(second)).sum(axis=1)  # [N, 1]
    cosines = np.asarray(products).ravel()
    return score(CORRELATIONS, np.array([e.score for e in raw]), cosines)


TASK = Similarity
