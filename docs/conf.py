"""Builds the documentation site with Sphinx.

    python -m sphinx -W -b html -c docs . output/site

The source folder is the project's root, so that links between pages, READMEs and files are the
same on the site and in the plain files.
"""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

project = "korean-bert-albert"
author = "The korean-bert-albert project"
release = re.search(
    r'^VERSION = "(.+)"$', (ROOT / "bert_common" / "__init__.py").read_text(), re.MULTILINE
)[1]

extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = [
    "docs/index.rst", "docs/*.md", "docs/tutorials/*.md", "README.md", "README.ko.md",
    "CONTRIBUTING.md", "CHANGELOG.md", "reference_model/README.md", "sample_corpus/README.md",
    "sample_tasks/README.md",
]  # fmt: skip
language = "en"

# Heading anchors in the form that other Markdown renderers use.
myst_heading_anchors = 3
highlight_language = "text"

html_theme = "furo"
html_title = f"{project} {release}"
# The pages do not link to a source repository.
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
