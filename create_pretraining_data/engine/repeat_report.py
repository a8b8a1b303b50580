"""Reports how much of the text repeats earlier text, with examples."""

from collections.abc import Mapping
from typing import Any

from create_pretraining_data.engine.line_hashes import (
    DOCUMENTS,
    LINES,
    SHORT_LINES,
    SHORTEST_LINE,
    hash_document,
)
from create_pretraining_data.engine.splitting import read_chunk_text
from create_pretraining_data.engine.work_plan import WorkPlan

# Maps each kind of text to its counts, as `repeats.count_repeats` returns them.
Repeats = Mapping[str, Mapping[str, Any]]

# The shares of repeats above which a warning is given. In Wikipedia and in film reviews, 3 % of the
# lines are repeats, most of them short.
WORTH_A_WARNING = 0.1
WORTH_A_WARNING_WITH_SHORT = 0.5

# The maximum number of characters in an example.
_SHOWN = 50


def describe_repeats(repeats: Repeats) -> dict[str, Any]:
    """Converts the counts of `count_repeats` for the JSON file that describes the records."""
    return {
        kind: {"count": counts["count"], "repeats": _repeats(counts), "share": _share(counts)}
        for kind, counts in _with_all_lines(repeats).items()
    }


def summarize_repeats(repeats: Repeats) -> str:
    """Summarizes the counts of `count_repeats` in a phrase, for the program's last line."""
    counted = _with_all_lines(repeats)
    return (
        f"{_share(counted[DOCUMENTS]):.1%} of the documents and {_share(counted['all_lines']):.1%} "
        "of the lines repeat earlier ones"
    )


def find_repeat_problems(repeats: Repeats, plan: WorkPlan) -> list[str]:
    """Describes the kinds of text with many repeats that are not left out, one line each."""
    if plan.drop_duplicates != "none":  # unknown how many of the repeated lines are left
        return []
    counted = _with_all_lines(repeats)
    problems = []
    if _share(counted[DOCUMENTS]) > WORTH_A_WARNING:
        problems.append(
            _describe(counted[DOCUMENTS], "documents", plan)
            + ": --drop_duplicates=documents leaves them out"
        )
    if _share(counted[LINES]) > WORTH_A_WARNING:
        problems.append(
            _describe(counted[LINES], f"lines of {SHORTEST_LINE} characters or more", plan)
            + ": a model memorizes them instead of the language; --drop_duplicates=lines "
            "leaves them out"
        )
    elif _share(counted["all_lines"]) > WORTH_A_WARNING_WITH_SHORT:
        problems.append(
            _describe(counted["all_lines"], "lines", plan)
            + f", most of them shorter than {SHORTEST_LINE} characters: leave them out if they are "
            "no part of a dialogue"
        )
    return problems


def _with_all_lines(repeats):
    long, short = repeats[LINES], repeats[SHORT_LINES]
    both = {name: long[name] + short[name] for name in ("count", "distinct", "most_frequent")}
    both["most_frequent"] = sorted(both["most_frequent"], reverse=True)
    return {DOCUMENTS: repeats[DOCUMENTS], "all_lines": both, LINES: long}


def _repeats(counts):
    return counts["count"] - counts["distinct"]


def _share(counts):
    return round(_repeats(counts) / counts["count"], 6) if counts["count"] else 0.0


def _describe(counts, what, plan):
    frequency, value, number = counts["most_frequent"][0]
    return (
        f"{_share(counts):.0%} of the {what} ({_repeats(counts):,} of {counts['count']:,}) repeat "
        f"earlier ones, one of them occurs {frequency:,} times ({_find(value, number, plan)!r})"
    )


def _find(value, number, plan):
    """Returns the beginning of the document or line in a chunk that has a hash."""
    for document in read_chunk_text(plan.chunks[number]):
        hashed = hash_document(document)
        places = [0] if hashed.document == value else []
        places += [k for k, line in enumerate(hashed.lines) if line == value]
        if places:
            line = document[places[0]]
            return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
    return ""
