"""Keeps questions that were cut into pieces in a file, with what they were cut from and by.

Shapes: N questions, M contexts, Q pieces of all questions, C of all contexts.
"""

import hashlib
import itertools
import zipfile

import numpy as np

from bert_common.atomic_write import atomic_write
from finetuning.question_answering.windows import Encoded, count_workers, encode_questions

# Changes when the same questions would be cut otherwise, or kept otherwise.
FORMAT = 1


def load_or_encode(path, tokenizer, questions, max_query_length):
    """Takes the pieces from the file if they are those of these questions, else makes it anew.

    Args:
        path: of an .npz file; one that is damaged, or holds other questions, is replaced.
        tokenizer, questions, max_query_length: as for `windows.encode_questions`.

    Returns:
        A list of `Encoded`, and whether the file had them.
    """
    fingerprint = fingerprint_of(tokenizer, questions, max_query_length)
    encoded = _load(path, fingerprint)
    if encoded is not None:
        return encoded, True
    contexts = sum(1 for _ in itertools.groupby(questions, lambda entry: entry.context))
    encoded = encode_questions(tokenizer, questions, max_query_length, count_workers(contexts))
    _save(path, fingerprint, encoded)
    return encoded, False


def fingerprint_of(tokenizer, questions, max_query_length):
    """A SHA-256 (hexadecimal) of all that the pieces depend on."""
    digest = hashlib.sha256()

    def add(value):
        # As long as it says, so that no two lists of texts are the same bytes.
        value = str(value).encode("utf-8", "surrogatepass")
        digest.update(f"{len(value)}:".encode() + value)

    add(FORMAT)
    add(tokenizer.fingerprint())
    add(max_query_length)
    for context, group in itertools.groupby(questions, lambda entry: entry.context):
        asked = [entry.question for entry in group]
        for value in (len(asked), context, *asked):
            add(value)
    return digest.hexdigest()


def _save(path, fingerprint, encoded):
    contexts, numbers = [], []
    for pieces in encoded:  # those about one context share its arrays
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
    """The `Encoded` of a file, or None if it is not there, damaged, or of others."""
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
        Encoded(question, contexts[number], spans[number])
        for question, number in zip(questions, arrays["context_numbers"], strict=True)
    ]
