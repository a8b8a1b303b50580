"""What is no text is refused: a bad byte by its line, packed files by their kind."""

import bz2
import codecs
import functools
import lzma
import shutil

import pytest

from create_pretraining_data.engine.plain_text import recognise
from run_scripts.build_vocab import main as build_vocab
from run_scripts.create_data import main
from tests.support.create_data_runs import (
    arguments,
    one_line,
)

pytestmark = pytest.mark.usefixtures("small")


@pytest.mark.parametrize(
    ("codec", "mark", "bad"),
    [("utf-16-le", codecs.BOM_UTF16_LE, b"\x00\xdc"), ("cp949", b"", b"\xff")],
)
def test_a_bad_byte_is_named_with_its_line(corpus, tmp_path, capsys, codec, mark, bad):
    lines = (corpus / "text.txt").read_text().encode(codec).split("\n".encode(codec))
    path = tmp_path / "a.txt"
    path.write_bytes(mark + "\n".encode(codec).join([*lines[:6], bad, *lines[6:]]))
    message = f"{path}, line 7: the text must be "
    assert main(arguments(corpus, tmp_path / "out", f"--input_file={path}")) == 1
    assert message in one_line(capsys.readouterr().err)
    given = [f"--input_file={path}", f"--output_dir={tmp_path}/vocab", "--analyser=none"]
    assert build_vocab(["build_vocab.py", *given]) == 1
    assert message in capsys.readouterr().err


PACKED = {
    "zip": "a zip archive", "tar": "a tar archive", "gztar": "a tar archive in gzip",
    "bz2": "a bzip2 file", "xz": "an xz file", "zst": "a zstd file", "7z": "a 7z archive",
    "lzma": "an lzma file", "rar": "a RAR archive", "lz4": "an lz4 file", "pdf": "a PDF file",
    "doc": "a file of Word, Excel or Hangul", "png": "a picture", "jpg": "a picture",
}  # fmt: skip

# How files begin that Python does not write: from their formats' descriptions.
BEGINNINGS = {
    "zst": b"\x28\xb5\x2f\xfd\x04", "7z": b"7z\xbc\xaf\x27\x1c\0\4", "pdf": b"%PDF-1.7\n",
    "rar": b"Rar!\x1a\x07\x01\0", "lz4": b"\x04\x22\x4d\x18d@", "jpg": b"\xff\xd8\xff\xe0\0",
    "doc": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
}  # fmt: skip


@pytest.mark.parametrize("kind", PACKED)
def test_packed_text_is_refused_by_its_kind(corpus, tmp_path, capsys, kind):
    """Names of a tar archive, and what is valid UTF-8 in a small file, would pass for text."""
    (tmp_path / "texts").mkdir()
    text = tmp_path / "texts" / "a.txt"
    text.write_text("나는 학교에 갔다.\n")
    if kind in ("zip", "tar", "gztar"):
        path = shutil.make_archive(str(tmp_path / "a"), kind, tmp_path / "texts")
    else:
        old = functools.partial(lzma.compress, format=lzma.FORMAT_ALONE)
        packed = {"bz2": bz2.compress, "xz": lzma.compress, "lzma": old}
        path = tmp_path / f"a.{kind}"
        path.write_bytes(packed[kind](text.read_bytes()) if kind in packed else BEGINNINGS[kind])
    message = f"error: {path} must be text, gzipped text or a table; unpack or convert anything "
    message += f"else. Received: {PACKED[kind]}"
    assert main(arguments(corpus, tmp_path / "out", f"--input_file={path}")) == 1
    assert one_line(capsys.readouterr().err) == message
    given = [f"--input_file={path}", f"--output_dir={tmp_path}/vocab", "--analyser=none"]
    assert build_vocab(["build_vocab.py", *given]) == 1
    assert one_line(capsys.readouterr().err) == message


def test_text_that_begins_almost_as_a_packed_file_is_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"BZh is how it begins.\n" * 20)
    assert recognise(str(path)).encoding == "utf-8"
