"""Reads the text that records are made of line by line, for what learns from it before."""

import contextlib
import functools
import gzip
import io
import os

from bert_common.progress import progress
from create_pretraining_data.engine.splitting import document_text, is_gzip, whole_gzip
from tokenization.vocab_learning.text_sample import TextFile, decode_line, split_lines


def open_texts(paths, input_format):
    """Files as `tokenization.vocab_learning.learn` takes them.

    What is not plain text is read once to see how much text it holds.

    Args:
        paths: of files, each plain or gzip, by its first bytes.
        input_format: one of `splitting.FORMATS`.

    Returns:
        A list of `TextFile`.

    Raises:
        InputError: a damaged gzip file, or a line that is no document.
    """
    sizes = {
        path: os.path.getsize(path)
        for path in paths
        if input_format == "text" and not is_gzip(path)
    }
    packed = [path for path in paths if path not in sizes]
    with progress("measuring the text", sum(map(os.path.getsize, packed)), "B") as bar:
        for path in packed:
            before, sizes[path] = bar.n, 0
            with _contents(path) as (file, plain):
                for line in _lines(plain, path, input_format):
                    sizes[path] += len(line)
                    bar.update(before + file.tell() - bar.n)
    return [TextFile(p, sizes[p], functools.partial(_read_lines, p, input_format)) for p in paths]


def _read_lines(path, input_format):
    with _contents(path) as (_, plain):
        yield from _lines(plain, path, input_format)


@contextlib.contextmanager
def _contents(path):
    """Opens a file; yields it, and the same or what it holds inflated."""
    with whole_gzip(path), open(path, "rb") as file:
        yield file, gzip.GzipFile(fileobj=file) if is_gzip(path) else file


def _lines(plain, path, input_format):
    if input_format == "text":
        yield from split_lines(plain)
        return
    for number, line in enumerate(plain, start=1):
        text = decode_line(line, path, number)
        if text:
            text = document_text(text, lambda n=number: f"{path}, line {n}")
            yield from split_lines(io.BytesIO(text.encode("utf-8") + b"\n"))
