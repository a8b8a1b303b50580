"""Regenerates the files of docs/tutorials from their texts.

    python docs/tutorial_pages            writes notebooks, and pages with their present outputs
    python docs/tutorial_pages 02 07      also runs these two for new outputs
    python docs/tutorial_pages all        also runs all tutorials

Running tutorials needs `pip install -e '.[tutorials]'` in the environment of this interpreter.
"""

import resource
import sys
import time
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]

sys.path[:0] = [str(DOCS.parent), str(DOCS)]


def run(path):
    """Runs a tutorial and writes its pages; prints the time and memory that it took."""
    from tutorial_pages.execution import execute
    from tutorial_pages.pages import write_pages

    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    write_pages(path, execute(path))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    print(
        f"written: the pages of {path.stem}: {time.monotonic() - start:.0f} s, {cpu:.0f} s of CPU "
        # The peak of the largest process so far, in KiB on Linux.
        f"time, {used.ru_maxrss / 2**20:.1f} GiB"
    )


def main(names):
    """Writes all tutorials; runs those whose numbers are in `names`, or all for "all"."""
    from tutorial_pages.notebooks import write_notebooks
    from tutorial_pages.pages import rewrite_pages
    from tutorial_pages.texts import TEXTS

    for path in TEXTS:
        write_notebooks(path)
        if "all" in names or path.stem[:2] in names:
            run(path)
        elif not rewrite_pages(path):
            print(f"note: {path.stem} has other code than its pages: run it")


if __name__ == "__main__":
    main(sys.argv[1:])
