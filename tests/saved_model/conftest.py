"""The tokenizers of this folder's models."""

import pytest

from tests.support.models.released_models import SPM_MODEL
from tests.support.models.served_models import quietly
from tests.support.task_data import write_tokenizer
from tests.support.tokenizer_cases import write_vocabulary
from tokenization import KoreanTokenizer, SentencePieceTokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return write_tokenizer(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def tokenizers(tokenizer, tmp_path_factory):
    """Name -> one; a marker may be a token of white space alone."""
    folder = tmp_path_factory.mktemp("vocabularies")
    odd = {
        "word_end_marker": "\u2581", "word_end_marker_at": "eojeol", "unknown": "character",
        "jamo_fallback": True, "do_lower_case": True, "shorten_runs": 2, "drop_invisible": True,
    }  # fmt: skip
    marked = {"word_end_marker": "_", "unknown": "character"}
    spaced = {"word_end_marker": "\u2581", "word_end_marker_at": "eojeol", "unknown": "character"}
    made = {"plain": tokenizer, "sentencepiece": SentencePieceTokenizer(SPM_MODEL)}
    for name, options in (("odd", odd), ("marked", marked)):
        path = write_vocabulary(folder / f"{name}.txt", options["word_end_marker"])
        made[name] = quietly(KoreanTokenizer, path, **options)
    (folder / "spaced.txt").write_bytes(
        tokenizer.vocabulary_bytes + "\u2581\n##\u2581\n##다\u2581\n".encode()
    )
    return {**made, "spaced": KoreanTokenizer(folder / "spaced.txt", **spaced)}
