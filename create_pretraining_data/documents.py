"""Documents of sentences, as piece ids."""

from typing import NamedTuple


class Sentence(NamedTuple):
    """One line of the text, tokenized. From here on a piece is its id."""

    ids: list[int]  # [T] the pieces
    word_starts: list[int]  # [W] where in ids each word begins; the first is 0


def tokenize_documents(documents, tokenizer):
    """Tokenizes documents; a sentence or a document without a piece is left out.

    Args:
        documents: a list of documents, each a list of sentences, as text.
        tokenizer: anything with `tokenize_words` and `convert_tokens_to_ids`.

    Returns:
        A list of documents, each a non-empty list of `Sentence`.
    """
    tokenized = []
    for document in documents:
        sentences = [tokenize_sentence(text, tokenizer) for text in document]
        sentences = [s for s in sentences if s.ids]  # a line of control characters has none
        if sentences:
            tokenized.append(sentences)
    return tokenized


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


def find_layout_problems(statistics, objective):
    """Says what in the layout of the text makes a sentence objective meaningless.

    Args:
        statistics: `ChunkStatistics` of the whole text.
        objective: "nsp", "sop" or "none".

    Returns:
        A list of warnings, one line each.
    """
    problems = []
    documents, single = statistics.documents, statistics.single_sentence_documents
    if objective == "nsp" and documents == 1:
        problems.append(
            "the whole input is one document, so the random next sentences come from it too: "
            "put a blank line between documents"
        )
    if objective != "none" and single == documents:
        problems.append(
            f"every one of the {documents} documents has a single sentence: a blank line "
            "separates documents, not sentences"
        )
    elif objective != "none" and single > documents / 2:
        problems.append(
            f"{single} of the {documents} documents have a single sentence, which is cut in two "
            "for A and B: a blank line separates documents, not sentences"
        )
    return problems
