"""Reads the lines of input files of any kind, to learn a vocabulary from them."""

import collections
import functools
import io
import os
from collections.abc import Iterable

from bert_common.errors import InputError
from bert_common.progress import progress
from create_pretraining_data.engine.plain_text import TEXT_KEY, open_plain, recognise_all
from create_pretraining_data.engine.splitting import document_text
from tokenization.vocab_learning.text_sample import TextFile, decode_line, split_lines


def open_texts(
    paths: Iterable[str],
    input_format: str | None = None,
    text_key: str = TEXT_KEY,
    strict_utf8: bool = True,
) -> list[TextFile]:
    """Opens input files for `tokenization.vocab_learning.learn`; for the flags see `recognise`.

    Files that are not plain text are read once to measure their text. Bytes of JSON lines that are
    not UTF-8 are an `InputError` with `strict_utf8`; otherwise they are left to the reader.
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
                for line in _lines(opened.file, source, nulls, strict_utf8):
                    sizes[source] += len(line)
                    bar.update(before + opened.position() - bar.n)
                if count := opened.left_out() + nulls[source.path]:
                    print(f"{source.path}: rows without a text, left out: {count:,}")
    return [
        TextFile(s.path, sizes[s], functools.partial(_read_lines, s, strict_utf8)) for s in sources
    ]


def _is_measured(source):
    return source.is_plain and source.line_format == "text"


def _read_lines(source, strict_utf8):
    with open_plain(source) as opened:
        yield from _lines(opened.file, source, collections.Counter(), strict_utf8)


def _lines(plain, source, nulls, strict_utf8):
    """Yields the lines of text in a file; counts null texts in `nulls` under the file's path."""
    if source.line_format == "text":
        yield from split_lines(plain)
        return
    for number, line in enumerate(plain, start=1):
        damage = b"" if strict_utf8 else _damaged_bytes(line)
        whole = line.decode("utf-8", "ignore").encode() if damage else line
        text = decode_line(whole, source.path, number)
        if text:
            place = functools.partial("{}, line {}".format, source.path, number)
            try:
                text = document_text(text, source.plain_key, place)
            except InputError:
                decode_line(line, source.path, number)  # names the damaged byte, if there is one
                raise
            if text is None:
                nulls[source.path] += 1
        if text or damage:
            content = (text or "").encode("utf-8") + damage + b"\n"
            yield from split_lines(io.BytesIO(content))


def _damaged_bytes(line):
    """Returns the bytes of a line that are not UTF-8, with spaces, for the reader to count."""
    try:
        line.decode("utf-8")
        return b""
    except UnicodeDecodeError:
        escaped = line.decode("utf-8", "surrogateescape")
    damaged = (c.encode("utf-8", "surrogateescape") for c in escaped if "\udc80" <= c <= "\udcff")
    return b" ".join(damaged)
