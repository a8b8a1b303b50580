"""Makes and prints tables of the answers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

CHECK_HEADINGS = ("device or strategy", "XLA", "precision", "option", "difference", "result")


def check_row(pair: tuple[Mapping[str, Any], Mapping[str, Any]]) -> tuple[str, ...]:
    """Returns the row of a step, given its (task, answer)."""
    task, answer = pair
    difference = f"{answer['difference']:.1e}" if "difference" in answer else ""
    where = task["device"] or task["strategy"]
    xla, option = "on" if task["xla"] else "off", task.get("option", "")
    return where, xla, task["precision"], option, difference, answer["result"]


def print_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows of strings in columns below a title; prints nothing without rows."""
    rows = [headings, *filter(None, rows)]
    if len(rows) == 1:
        return
    print(f"\n{title}\n")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip(), flush=True)
