"""Regenerates the generated pages of docs/.

python docs/generated_pages
"""

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]

sys.path[:0] = [str(DOCS.parent), str(DOCS)]

if __name__ == "__main__":
    from generated_pages.pages import PAGES

    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
        print(f"written: docs/{name}")
