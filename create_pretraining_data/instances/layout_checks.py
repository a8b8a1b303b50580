"""Finds layouts of a text that make a sentence objective meaningless."""


def find_layout_problems(statistics, objective):
    """Describes such problems of the text that has these `CorpusStatistics`, one line each."""
    problems = []
    if not statistics.documents:  # only blank lines
        return problems
    documents, single = statistics.documents, statistics.single_sentence_documents
    if objective == "nsp" and documents == 1:
        problems.append(
            "the whole input is one document, so the random next sentences come from it too: "
            "put a blank line between documents"
        )
    elif objective == "nsp" and statistics.from_same_document:
        share = statistics.from_same_document / statistics.label_ones
        problems.append(
            f"{share:.0%} of the random next sentences come from the same document as the "
            "sentences before them, as there is no other one to draw from: put a blank line "
            "between documents"
        )
    if objective != "none" and single == documents:
        problems.append(
            f"every one of the {documents:,} documents has a single sentence: a blank line "
            "separates documents, not sentences"
        )
    elif objective != "none" and single > documents / 2:
        problems.append(
            f"{single:,} of the {documents:,} documents have a single sentence, which is cut in "
            "two for A and B: a blank line separates documents, not sentences"
        )
    return problems
