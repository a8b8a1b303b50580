"""Caches tokenized questions in a file, with a fingerprint of the questions and the tokenizer.

Shapes: N questions, M contexts, Q tokens of all questions, C tokens of all contexts.
"""

import hashlib
import itertools
import zipfile
from collections.abc import Sequence

import numpy as np

from bert_common.atomic_write import atomic_write
from finetuning.question_answering.data import Question
from finetuning.question_answering.windows import EncodedQuestion, encode_questions
from tokenization.base import TokenizerInterface

# Increase it when the same questions would be tokenized or stored differently.
CACHE_VERSION = 1


def load_or_encode(
    path: str, tokenizer: TokenizerInterface, questions: Sequence[Question], max_query_length: int
) -> tuple[list[EncodedQuestion], bool]:
    """Loads tokenized questions from a file, or tokenizes the questions and writes the file.

    The .npz file is replaced if it is damaged or holds different questions. The second value
    returned is whether the questions were loaded.
    """
    fingerprint = fingerprint_of(tokenizer, questions, max_query_length)
    encoded = _load(path, fingerprint)
    if encoded is not None:
        return encoded, True
    encoded = encode_questions(tokenizer, questions, max_query_length)
    _save(path, fingerprint, encoded)
    return encoded, False


def is_cache(path: str) -> bool:
    """Returns True if an existing file is a cache of `load_or_encode`, empty or a damaged zip."""
    with open(path, "rb") as file:
        start = file.read(2)
    if start != b"PK":
        return not start
    try:
        with zipfile.ZipFile(path) as archive:
            return {"fingerprint.npy", "context_ends.npy"} <= set(archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError):
        return True


def fingerprint_of(
    tokenizer: TokenizerInterface, questions: Sequence[Question], max_query_length: int
) -> str:
    """Returns a SHA-256 (hexadecimal) of everything that the tokens depend on."""
    digest = hashlib.sha256()

    def add(value):
        # The length makes different lists of texts different bytes.
        value = str(value).encode("utf-8", "surrogatepass")
        digest.update(f"{len(value)}:".encode() + value)

    add(CACHE_VERSION)
    add(tokenizer.fingerprint())
    add(max_query_length)
    for context, group in itertools.groupby(questions, lambda entry: entry.context):
        texts = [entry.question for entry in group]
        for value in (len(texts), context, *texts):
            add(value)
    return digest.hexdigest()


def _save(path, fingerprint, encoded):
    contexts: list[EncodedQuestion] = []
    numbers: list[int] = []
    for pieces in encoded:  # questions about the same context share its arrays
        if not contexts or pieces.context_ids is not contexts[-1].context_ids:
            contexts.append(pieces)
        numbers.append(len(contexts) - 1)
    with atomic_write(path) as file:
        np.savez(
            file,
            fingerprint=np.array(fingerprint),
            question_ids=np.concatenate([pieces.question_ids for pieces in encoded]),  # [Q]
            question_ends=np.cumsum([len(pieces.question_ids) for pieces in encoded]),  # [N]
            context_ids=np.concatenate([pieces.context_ids for pieces in contexts]),  # [C]
            spans=np.concatenate([pieces.spans for pieces in contexts]),  # [C, 2]
            context_ends=np.cumsum([len(pieces.context_ids) for pieces in contexts]),  # [M]
            context_numbers=np.array(numbers),  # [N]
        )


def _load(path, fingerprint):
    """Returns a file's `EncodedQuestion`s; None if missing, damaged or for different questions."""
    try:
        with np.load(path) as file:
            if str(file["fingerprint"]) != fingerprint:
                return None
            arrays = {name: file[name] for name in file.files}
    except (OSError, EOFError, ValueError, KeyError, AttributeError, zipfile.BadZipFile):
        return None
    questions = np.split(arrays["question_ids"], arrays["question_ends"][:-1])
    contexts = np.split(arrays["context_ids"], arrays["context_ends"][:-1])
    spans = np.split(arrays["spans"], arrays["context_ends"][:-1])
    return [
        EncodedQuestion(question, contexts[number], spans[number])
        for question, number in zip(questions, arrays["context_numbers"], strict=True)
    ]
