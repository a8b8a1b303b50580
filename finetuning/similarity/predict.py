"""Computes the similarity of a user's pairs of texts with a model of text vectors."""

from typing import TYPE_CHECKING, Any

import numpy as np

from finetuning.examples import Examples, Outputs
from finetuning.readers import check_members, check_strings
from finetuning.results import Classified
from finetuning.similarity.data import SimilarityDataset, SimilarityExample
from finetuning.similarity.ranking import unit_vectors
from finetuning.similarity.task import Similarity
from tokenization.base import TokenizerInterface

if TYPE_CHECKING:
    from model_formats.loaded_model import LoadedModel


def make_task(loaded: "LoadedModel", tokenizer: TokenizerInterface, max_length: int) -> Similarity:
    """Makes the task of a `LoadedModel` for a user's texts instead of a data set."""
    return Similarity(SimilarityDataset("", {}), tokenizer, max_length)


def read_input(task: Similarity, name: str, value: Any) -> SimilarityExample:
    """Makes a raw example of a user's input; TypeError or ValueError if it is malformed."""
    first, second = check_members(value)
    return SimilarityExample(name, check_strings(first, second))


def read_outputs(task: Similarity, examples: Examples, outputs: Outputs) -> list[Classified]:
    """Returns the cosine of every pair, as a score."""
    vectors = unit_vectors(np.stack(outputs["vectors"]))  # [N, 2, H]
    cosines = np.sum(vectors[:, 0] * vectors[:, 1], axis=-1)  # [N]
    return [Classified(float(cosine), {}) for cosine in cosines]
