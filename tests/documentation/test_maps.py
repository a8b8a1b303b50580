"""The map of the folders and the tables of where things are name what is there."""

import re

import pytest

from tests.support.paths import MODULES, ROOT

MAPS = ("docs/architecture.md", "docs/architecture.ko.md")

# What a cell writes as a path, and as the name of a table in such a file.
PATH = re.compile(r"`(\w+/[\w./-]+|\w+\.py)`")
NAME = re.compile(r"`([A-Z_]{4,})`")


def missing(row):
    """The paths of a row that do not exist, and the names that none of its files has."""
    paths = [ROOT / path for path in PATH.findall(row) if (ROOT / path.split("/")[0]).exists()]
    gone = [str(path.relative_to(ROOT)) for path in paths if not path.exists()]
    text = "".join(path.read_text(encoding="utf-8") for path in paths if path.is_file())
    return gone + [name for name in NAME.findall(row) if paths and name not in text]


@pytest.mark.parametrize("page", MAPS)
def test_the_map_draws_every_folder_and_no_other(page):
    drawn = (ROOT / page).read_text(encoding="utf-8").split("```")[1]
    folders = {path.parent.name for path in MODULES} - {"contender_steps", "devices"}
    assert {name for name in folders if f"{name}/" not in drawn} == set()
    there = {path.name for path in ROOT.glob("[!.]*/**/")}
    assert set(re.findall(r"(?<!-)\b([a-z_]+)/", drawn)) <= there


@pytest.mark.parametrize("page", (*MAPS, "CONTRIBUTING.md"))
def test_tables_name_what_is_there(page):
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) > 15 and [found for row in rows if (found := missing(row))] == []
