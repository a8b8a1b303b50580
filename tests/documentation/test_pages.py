"""The pages of the documentation: links, both languages, those made from the code, the site."""

import dataclasses
import json
import re

import pytest
from generated_pages import migration
from generated_pages.flags import PROGRAMS
from generated_pages.pages import PAGES as GENERATED
from generated_pages.reference_programs import PROGRAMS as REFERENCE_PROGRAMS

from tests.support.libraries import needs
from tests.support.paths import ROOT, run_python
from tests.support.readmes import DOCS, FENCED

MARKDOWN = (
    *ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("tutorials/*.md"),
    *ROOT.glob("*_*/README.md"),
)  # fmt: skip

# Made from the code, whose sentences are English.
ENGLISH_ONLY = {"flags.md", "reference.md"}

LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")

# What a reader gets through in a minute or two, without scrolling sideways.
MOST_LINES_OF_A_README = 130
LONGEST_LINE = 120
LONGEST_CELL = 80

README_SECTIONS = 7


def text_of(path):
    """A page without its code blocks."""
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """The anchors of a page's headings, as readers of Markdown make them."""
    headings = re.findall(r"^#+ (.+)$", text_of(path), re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in kept}


def broken_links(path):
    """The links of a page that lead to no file of this project, or to no heading of a page."""
    for link in LINK.findall(text_of(path)):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if target.suffix == ".jsonl":  # a line of the runs, which `test_links_to_runs` checks
            anchor = ""
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            yield link


def test_links():
    found = {str(path.relative_to(ROOT)): list(broken_links(path)) for path in MARKDOWN}
    assert {path: links for path, links in found.items() if links} == {}


def test_broken_links_are_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A head, too\n\n[a](page.md#a-head-too) [b](#other) [c](none.md)\n")
    assert list(broken_links(page)) == ["#other", "none.md"]


RUN_LINK = re.compile(r"\[([^\]]+)\]\(results/runs\.jsonl#L(\d+)\)")


@pytest.mark.parametrize("name", ("results.md", "results.ko.md"))
def test_links_to_runs(name):
    """Each names the run that its line describes."""
    runs = (DOCS / "results" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    links = RUN_LINK.findall((DOCS / name).read_text(encoding="utf-8"))
    assert len(links) > 30
    for run, line in links:
        assert json.loads(runs[int(line) - 1])["name"] == run


def test_every_page_is_in_both_languages():
    names = {path.name for path in DOCS.glob("*.md")}
    english = {name for name in names if not name.endswith(".ko.md")} - ENGLISH_ONLY
    assert {name.replace(".md", ".ko.md") for name in english} == names - english - ENGLISH_ONLY


@pytest.mark.parametrize("name", ("README.md", "README.ko.md"))
def test_length_of_the_readme(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES_OF_A_README
    cells = [cell.strip() for line in lines if line[:1] == "|" for cell in line.split("|")]
    assert max(map(len, cells)) <= LONGEST_CELL
    assert max(len(line) for line in lines if line[:1] != "|") <= LONGEST_LINE
    assert len(re.findall("^## ", text, re.MULTILINE)) == README_SECTIONS


@pytest.mark.parametrize("name", GENERATED)
def test_generated_pages_are_fresh(name):
    """If not: python docs/generated_pages"""
    assert (DOCS / name).read_text(encoding="utf-8") == GENERATED[name]()


def test_a_program_lists_each_of_its_flags_or_links_to_it():
    page = (DOCS / "flags.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    for program, flags_class in PROGRAMS.items():
        titles = re.findall(r"\[([\w -]+)\]\(#", parts[program])
        listed = "".join([parts[program], *(parts[title] for title in titles)])
        shown = re.findall(r"`--(\w+)`[^|]* \|", listed.replace("`, `", "` |\n| `"))
        assert set(shown) == {field.name for field in dataclasses.fields(flags_class)}


def test_flags_of_the_reference_programs_are_all_shown():
    shown = [found for references in migration.STANDS_FOR.values() for found in references]
    assert sorted(shown) == sorted(REFERENCE_PROGRAMS)
    for program, references in migration.STANDS_FOR.items():
        page = migration.page("en").split(f"## {program}\n")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `--(\w+)` \|", page, re.MULTILINE)
        listed = "".join(re.findall(r"^\* .*$", page, re.MULTILINE))
        rows += re.findall(r"`--(\w+)`", listed)
        assert set(rows) == {name for found in references for name in REFERENCE_PROGRAMS[found]}
        assert len(rows) == len(set(rows))


@pytest.mark.slow
@needs("sphinx", "myst_parser", "furo", extra="docs")
def test_the_site_is_built_without_warnings(tmp_path):
    words = ("-W", "-q", "-b", "html", "-c", "docs", ".", tmp_path / "site")
    done = run_python("-m", "sphinx", *words)
    assert done.returncode == 0, done.stderr
    for name in ("docs/index.html", "README.html", "docs/flags.html", "docs/training.ko.html"):
        assert (tmp_path / "site" / name).is_file()
