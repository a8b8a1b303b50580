"""Reports what an adaptation did to a model, with counts and examples of each kind of row."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from model_formats.adaptation.added_tokens import AddedTokens
from model_formats.adaptation.new_rows import KINDS, NewRow
from tokenization.loading import Tokenizer

# Enough examples to judge a kind of row.
EXAMPLES = 8

REPORT_FILE = "adaptation.json"


def vocabulary_report(rows: Sequence[NewRow], old: Tokenizer, new: Tokenizer) -> dict[str, Any]:
    """Describes the rows of a new vocabulary, for a JSON file and `as_lines`."""
    groups = {kind: [row for row in rows if row.kind == kind] for kind in KINDS}
    carried = {row.sources[0] for row in groups["kept"]}
    dropped = [token for index, token in old.inv_vocab.items() if index not in carried]
    return {
        "old_pieces": len(old.vocab),
        "new_pieces": len(new.vocab),
        "rows": len(rows),
        **{kind: _counted(group, old) for kind, group in groups.items()},
        "dropped": {"count": len(dropped), "examples": [_readable(t) for t in dropped[:EXAMPLES]]},
    }


def added_report(rows: Sequence[NewRow], old: Tokenizer, added: AddedTokens) -> dict[str, Any]:
    """Describes added and impossible tokens, for a JSON file and `as_lines`."""
    report = vocabulary_report(rows, old, added.tokenizer)
    by_token = {row.token: row for row in rows}
    for name in ("filled", "appended"):
        report[name] = _counted([by_token[token] for token in getattr(added, name)], old)
    for name in ("known", "impossible"):
        tokens = [_readable(token) for token in getattr(added, name)]
        report[name] = {"count": len(tokens), "examples": tokens}
    return report


# Key of a report -> its description in the printed line.
MEANINGS = {
    "kept": "rows of the same token",
    "averaged": "means of the old tokenizer's tokens",
    "random": "drawn like a typical row: the old tokenizer has only [UNK], or no text is cut so",
    "dropped": "old tokens that the new vocabulary lacks",
    "filled": "tokens that took an unused row",
    "appended": "tokens after the last row",
    "known": "tokens that the vocabulary had already",
    "impossible": "tokens that no text can be cut into, not added",
}


def as_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines to print for a `vocabulary_report` or an `added_report`."""
    yield f"vocabulary: {report['old_pieces']:,} tokens -> {report['new_pieces']:,}"
    for name, meaning in MEANINGS.items():
        if name not in report or not report[name]["count"]:
            continue
        examples = report[name]["examples"][:EXAMPLES]
        more = ", ..." if report[name]["count"] > len(examples) else ""
        yield f"    {name:10} {report[name]['count']:>7,} {meaning}: {', '.join(examples)}{more}"


def _counted(rows, old):
    examples = [_describe(row, old) for row in rows[:EXAMPLES]]
    return {"count": len(rows), "examples": examples}


def _describe(row, old):
    """Describes a token together with the old tokens that its row averages."""
    if row.token is None:
        return "(no token)"
    sources = [old.inv_vocab.get(index) for index in row.sources]
    if sources in ([], [row.token]) or row.kept and sources == [None]:
        return _readable(row.token)
    return f"{_readable(row.token)} = {' + '.join(_readable(str(token)) for token in sources)}"


def _readable(token):
    """Composes a token's syllables, as a vocabulary of jamo spells them decomposed."""
    return unicodedata.normalize("NFC", token)
