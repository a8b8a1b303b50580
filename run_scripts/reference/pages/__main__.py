"""Writes the pages of results again: python -m run_scripts.reference.pages."""

import dataclasses
import os
import sys

from bert_common.errors import InputError
from run_scripts.flags.declaration import flag
from run_scripts.flags.parser import run_program
from run_scripts.reference.ledger import LEDGER
from run_scripts.reference.pages.page import write_pages


@dataclasses.dataclass(frozen=True)
class PagesFlags:
    """Writes results.md, results.ko.md and their curves from the ledger of measured runs."""

    ledger: str = flag(str(LEDGER), "The ledger; questions.json and curves lie beside it.")
    output_dir: str = flag(
        None, "The folder of the pages. Without it: the one that the ledger's folder lies in."
    )


def main(argv=None):
    """The program; returns the exit status."""
    return run_program(write, PagesFlags, argv)


def write(flags):
    """Writes the pages."""
    if not os.path.exists(flags.ledger):
        raise InputError(f"--ledger must name a file. Received: {flags.ledger}")
    output_dir = flags.output_dir or os.path.dirname(os.path.dirname(os.path.abspath(flags.ledger)))
    write_pages(flags.ledger, output_dir)
    print(f"written: {os.path.join(output_dir, 'results.md')}, results.ko.md")


if __name__ == "__main__":
    sys.exit(main())
