"""Reads text files into documents of sentences, as piece ids."""

import os
from typing import NamedTuple

from tqdm import tqdm

from tokenization.errors import InputError


class Sentence(NamedTuple):
    """One line of the text, tokenized. From here on a piece is its id."""

    ids: list[int]  # [T] the pieces
    word_starts: list[int]  # [W] where in ids each word begins; the first is 0


class Corpus(NamedTuple):
    """What the summary of a run says about the text itself."""

    documents: int
    sentences: int
    pieces: int
    unknown: int  # how many of the pieces are [UNK]


def read_documents(files, tokenizer):
    """Reads UTF-8 text: one sentence a line, a blank line between documents.

    The end of a file ends its last document too, so that the documents do not depend on how
    the text is cut into files (in google-research/bert a document runs on into the next file).

    Args:
        files: paths.
        tokenizer: anything with `tokenize_words` and `convert_tokens_to_ids`.

    Returns:
        A list of documents, each a non-empty list of `Sentence`.

    Raises:
        InputError: a line that is not UTF-8, or no sentence in any of the files.
    """
    documents = []
    with tqdm(
        total=sum(os.path.getsize(path) for path in files),
        desc="tokenizing", unit="B", unit_scale=True, leave=False, delay=1, disable=None,
    ) as progress:  # fmt: skip
        for path in files:
            documents += _read_file(path, tokenizer, progress)
    if not documents:
        raise InputError(
            f"the input must hold at least one sentence. Received: {', '.join(files)}, "
            f"{sum(os.path.getsize(path) for path in files)} bytes, no sentence"
        )
    return documents


def _read_file(path, tokenizer, progress):
    documents = [[]]
    with open(path, "rb") as file:
        # Split at \n alone: str.splitlines would also cut at U+0085 or U+2028 inside a sentence.
        for number, line in enumerate(file, start=1):
            text = _decode(line, path, number)
            if text:
                sentence = tokenize_sentence(text, tokenizer)
                if sentence.ids:  # a line of control characters alone has none
                    documents[-1].append(sentence)
            else:
                documents.append([])
            progress.update(len(line))
    return [document for document in documents if document]


def _decode(line, path, number):
    # A byte-order mark is not part of the first word.
    encoding = "utf-8-sig" if number == 1 else "utf-8"
    try:
        return line.decode(encoding).strip()
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: the text must be UTF-8. Received: byte "
            f"0x{line[error.start]:02x} at column {error.start + 1} ({error.reason})"
        ) from None


def tokenize_sentence(text, tokenizer):
    """Tokenizes one line into a `Sentence`; the words are the tokenizer's own."""
    pieces, word_starts = [], []
    for word in tokenizer.tokenize_words(text):
        if word:
            word_starts.append(len(pieces))
            pieces += word
    return Sentence(list(tokenizer.convert_tokens_to_ids(pieces)), word_starts)


def join(sentences):
    """One `Sentence` out of several, in their order."""
    ids, word_starts = [], []
    for sentence in sentences:
        offset = len(ids)
        word_starts += [start + offset for start in sentence.word_starts]
        ids += sentence.ids
    return Sentence(ids, word_starts)


def describe(documents, unk_id):
    """Counts a corpus.

    Args:
        documents: as `read_documents` returns them.
        unk_id: the id of [UNK], or None.

    Returns:
        A `Corpus`.
    """
    sentences = [sentence for document in documents for sentence in document]
    return Corpus(
        documents=len(documents),
        sentences=len(sentences),
        pieces=sum(len(sentence.ids) for sentence in sentences),
        unknown=sum(sentence.ids.count(unk_id) for sentence in sentences),
    )


def find_layout_problems(documents, objective):
    """Says what in the layout of the text makes a sentence objective meaningless.

    Args:
        documents: as `read_documents` returns them.
        objective: "nsp", "sop" or "none".

    Returns:
        A list of warnings, one line each.
    """
    problems = []
    if objective == "nsp" and len(documents) == 1:
        problems.append(
            "the whole input is one document, so the random next sentences come from it too: "
            "put a blank line between documents"
        )
    if objective != "none" and all(len(document) == 1 for document in documents):
        problems.append(
            f"every one of the {len(documents)} documents has a single sentence: a blank line "
            "separates documents, not sentences"
        )
    return problems
