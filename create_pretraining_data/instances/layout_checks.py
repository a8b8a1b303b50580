"""Finds text layouts that make a sentence objective meaningless or lose much of the text."""

from create_pretraining_data.instances.coverage import ROW_ENDS
from create_pretraining_data.instances.make_instances import CorpusStatistics
from create_pretraining_data.instances.pairs import PairRules

# The largest share of tokens that may be in no row without a warning.
LOST_SHARE = 0.05


def find_layout_problems(
    statistics: CorpusStatistics, objective: str, split_sentences: bool = False
) -> list[str]:
    """Describes layouts that make the sentence objective meaningless, one line each.

    If `split_sentences` was already used, it is not suggested as a cure.
    """
    problems: list[str] = []
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


def find_lost_text(
    statistics: CorpusStatistics, rules: PairRules, split_sentences: bool = False
) -> list[str]:
    """Describes in one line the text that is in no row, or returns an empty list if it is little.

    If `split_sentences` was already used, it is not suggested as a cure.
    """
    lost = sum(statistics.pieces_in_no_row.values())
    if lost <= LOST_SHARE * statistics.pieces:
        return []
    cures = ["--long_lines=split"] if rules.long_lines == "truncate" else []
    if rules.objective != "none":
        cures += [] if split_sentences else ["--split_sentences"]
        cures += ["a larger --max_seq_length or --dupe_factor", "--objective=none"]
    return [
        f"{lost / statistics.pieces:.1%} of the tokens are in no row "
        f"({describe_lost_pieces(statistics)}); what helps: {', '.join(cures)}"
    ]


def describe_lost_pieces(statistics: CorpusStatistics) -> str:
    """Lists the numbers of tokens that are in no row, by reason."""
    reasons = sorted(statistics.pieces_in_no_row.items())
    return ", ".join(
        f"{count:,} {'at' if reason == ROW_ENDS else 'of'} {reason}" for reason, count in reasons
    )
