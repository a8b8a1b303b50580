"""Makes the documentation into a site with Sphinx.

    python -m sphinx -W -b html -c docs . output/site

The source folder is the project's, so that links between pages, READMEs and files are the same in
the site as in the plain files.
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

# Anchors of headings as other readers of Markdown make them.
myst_heading_anchors = 3
highlight_language = "text"

html_theme = "furo"
html_title = f"{project} {release}"
# No address of a source repository: the pages link to none.
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
