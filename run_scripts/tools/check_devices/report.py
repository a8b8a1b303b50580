"""Writes the results of check_devices to one JSON file, and prints them as tables."""

import datetime
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert_common.atomic_write import write_json
from bert_common.errors import MachineError
from bert_common.folders import make_writable

CHECK_HEADINGS = ("device or strategy", "XLA", "precision", "option", "difference", "result")


def make_folder(path: str) -> None:
    """Creates the folder of a report, or raises an InputError before minutes are spent."""
    make_writable(os.path.dirname(path) or ".", "--report must be in a folder that can be written")


def section(results: Sequence[Any], reason: str | None = None) -> dict[str, Any]:
    """Returns a part of the report: (task, answer) pairs, or None and why there are none."""
    return {"results": results or None, "reason": None if results else reason}


def finish(
    machine: Mapping[str, Any],
    sections: Mapping[str, Mapping[str, Any]],
    path: str | None,
    what: str = "checks",
) -> None:
    """Writes the report if `path` is given; raises a MachineError unless all results are "ok".

    `sections` are from `section`; `what` names the results.
    """
    if path:
        write_json(path, make_report(machine, sections))
        print(f"\nwritten: {path}")
    pairs = [pair for part in sections.values() for pair in part["results"] or ()]
    wrong = sum(answer["result"] != "ok" for _, answer in pairs)
    if wrong:
        raise MachineError(f"all {what} must pass. Received: {wrong} of {len(pairs)} failed")
    print(f"\nAll {len(pairs)} {what} passed.")


def make_report(
    machine: Mapping[str, Any], sections: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the content of the JSON file."""
    return {
        "version": 3,
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "gpu_reason": None if machine["gpus"] else "TensorFlow sees no GPU",
        **{
            name: {
                "results": part["results"]
                and [{"task": task, "answer": answer} for task, answer in part["results"]],
                "reason": part["reason"],
            }
            for name, part in sections.items()
        },
    }


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
