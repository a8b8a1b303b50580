"""Finds layouts of a text that make a sentence objective meaningless."""


def find_layout_problems(statistics, objective, split_sentences=False):
    """Describes such problems of the text that has these `CorpusStatistics`, one line each.

    Args:
        statistics: `CorpusStatistics`.
        objective: "nsp", "sop" or "none".
        split_sentences: lines were split into sentences, so it is no cure.
    """
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
    if objective != "none" and single > documents / 2:
        problems.append(
            (
                f"every one of the {documents:,} documents has a single sentence"
                if single == documents
                else f"{single:,} of the {documents:,} documents have a single sentence"
            )
            + ", which is cut in two for A and B: "
            + ("" if split_sentences else "if lines are paragraphs, add --split_sentences; ")
            + "if a blank line follows every sentence, leave it to the ends of documents; "
            "if documents are single sentences, such as reviews, --objective=none has no pairs"
        )
    return problems
