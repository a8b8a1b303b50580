"""Reads the lines of input files of any kind, to learn a vocabulary from them."""

import collections
import functools
import io
import os
from collections.abc import Iterable

from bert_common.progress import progress
from create_pretraining_data.engine.plain_text import TEXT_KEY, open_plain, recognise_all
from create_pretraining_data.engine.splitting import document_text
from tokenization.vocab_learning.text_sample import TextFile, decode_line, split_lines


def open_texts(
    paths: Iterable[str], input_format: str | None = None, text_key: str = TEXT_KEY
) -> list[TextFile]:
    """Opens input files for `tokenization.vocab_learning.learn`; for the flags see `recognise`.

    Files that are not plain text are read once to measure their text.
    """
    sources = recognise_all(paths, input_format, text_key)
    unmeasured = [source for source in sources if not _is_measured(source)]
    sizes = {source: os.path.getsize(source.path) for source in sources if _is_measured(source)}
    total = sum(os.path.getsize(source.path) for source in unmeasured)
    nulls: collections.Counter[str] = collections.Counter()
    with progress("measuring the text", total, "B") as bar:
        for source in unmeasured:
            before, sizes[source] = bar.n, 0
            with open_plain(source) as opened:
                for line in _lines(opened.file, source, nulls):
                    sizes[source] += len(line)
                    bar.update(before + opened.position() - bar.n)
                if count := opened.left_out() + nulls[source.path]:
                    print(f"{source.path}: rows without a text, left out: {count:,}")
    return [TextFile(s.path, sizes[s], functools.partial(_read_lines, s)) for s in sources]


def _is_measured(source):
    return source.is_plain and source.line_format == "text"


def _read_lines(source):
    with open_plain(source) as opened:
        yield from _lines(opened.file, source, collections.Counter())


def _lines(plain, source, nulls):
    """Yields the lines of text in a file; counts null texts in `nulls` under the file's path."""
    if source.line_format == "text":
        yield from split_lines(plain)
        return
    for number, line in enumerate(plain, start=1):
        text = decode_line(line, source.path, number)
        if text:
            place = functools.partial("{}, line {}".format, source.path, number)
            text = document_text(text, source.plain_key, place)
            if text is None:
                nulls[source.path] += 1
        if text:
            yield from split_lines(io.BytesIO(text.encode("utf-8") + b"\n"))
