"""Runs a tutorial's notebook in a temporary folder."""

import os
import sys
import tempfile
from pathlib import Path

from tutorial_pages.notebooks import notebook_text
from tutorial_pages.texts import ROOT

# Entries of the project that a run must not read or write, such as the outputs of other runs.
NOT_LINKED = {"output", ".git", ".venv"}

# The timeout of one cell in seconds: ten times the slowest cell's time on two idle cores.
TIMEOUT = 1800


def execute(path):
    """Runs a tutorial, whose code is the same in both languages.

    Returns:
        The outputs of each code cell, in order, in nbformat's form.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raised.
    """
    import nbclient
    import nbformat

    # Makes "python" in a cell the interpreter of the kernel.
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        for entry in ROOT.iterdir():
            if entry.name not in NOT_LINKED:
                (Path(folder) / entry.name).symlink_to(entry)
        node = nbformat.reads(notebook_text(path, "ko"), as_version=4)
        nbformat.validate(node)
        resources = {"metadata": {"path": folder}}
        client = nbclient.NotebookClient(
            node, timeout=TIMEOUT, kernel_name="python3", resources=resources
        )
        client.execute(env={**os.environ, "PATH": programs})
    return [cell.outputs for cell in node.cells if cell.cell_type == "code"]
