"""Reads input text of any format line by line, for learning a vocabulary from it."""

import contextlib
import functools
import gzip
import io
import os

from bert_common.progress import progress
from create_pretraining_data.engine.splitting import document_text, is_gzip, report_damaged_gzip
from tokenization.vocab_learning.text_sample import TextFile, decode_line, split_lines


def open_texts(paths, input_format):
    """Opens input files as a list of `TextFile`, for `tokenization.vocab_learning.learn`.

    Files that are not plain text are read once to measure the text in them.

    Args:
        paths: the files, compressed with gzip or not.
        input_format: one of `splitting.FORMATS`.

    Raises:
        InputError: a gzip file is damaged, or a line is not a document.
    """
    sizes = {
        path: os.path.getsize(path)
        for path in paths
        if input_format == "text" and not is_gzip(path)
    }
    unmeasured = [path for path in paths if path not in sizes]
    with progress("measuring the text", sum(map(os.path.getsize, unmeasured)), "B") as bar:
        for path in unmeasured:
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
    """Opens a file; yields it and its decompressed contents."""
    with report_damaged_gzip(path), open(path, "rb") as file:
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
