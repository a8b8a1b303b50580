"""Text in UTF-16 and cp949 gives the same records and vocabulary as in UTF-8."""

import bz2
import codecs
import functools
import gzip
import lzma
import shutil

import pytest

from create_pretraining_data.engine.plain_text import recognise
from run_scripts.build_vocab import main as build_vocab
from run_scripts.create_data import main
from tests.support.create_data_runs import (
    KILLS,
    arguments,
    learn,
    one_line,
    run,
    run_and_die,
    run_small,
)

pytestmark = pytest.mark.usefixtures("small")

ENCODINGS = {
    "UTF-16-LE": "utf-16-le", "UTF-16-BE": "utf-16-be", "UTF-8, marked": "utf-8-sig",
    "cp949": "cp949",
}  # fmt: skip
MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


@pytest.fixture(scope="module")
def plain(corpus, tmp_path_factory):
    """Texts with plain UTF-8; JSON with Hangul, not escapes."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "a.txt").write_text((corpus / "text.txt").read_text())
    lines = (corpus / "text.jsonl").read_text().encode().decode("unicode_escape")
    (folder / "a.jsonl").write_text(lines.replace("\n", "\\n").replace("}\\n", "}\n"))
    return folder


def encoded(plain, tmp_path, name, encoding, packed=False):
    codec = ENCODINGS[encoding]
    content = MARKS.get(codec, b"") + (plain / name).read_text().encode(codec)
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


@pytest.fixture(scope="module")
def expected_records(corpus, plain, tmp_path_factory):
    """The records of each plain text."""
    found = {}
    for path in sorted(plain.iterdir()):
        made = run_small(corpus, tmp_path_factory.mktemp("plain"), f"--input_file={path}")
        found[path.name] = made.records
    return found


@pytest.mark.parametrize(
    ("name", "packed"), [("a.txt", False), ("a.jsonl", False), ("a.txt", True)]
)
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_records_are_the_same(
    corpus, plain, expected_records, tmp_path, capsys, encoding, name, packed
):
    expected = expected_records[name]
    path = encoded(plain, tmp_path, name, encoding, packed)
    made = run(corpus, tmp_path / "out", f"--input_file={path}", "--num_workers=2").records
    said = capsys.readouterr().out
    if encoding == "UTF-8, marked" and not packed:  # the mark moves where the text is cut
        assert len(made) == len(expected)
    elif encoding != "UTF-8, marked":
        assert made == expected
        assert f"{path}: read as {ENCODINGS[encoding][:5].upper().replace('CP', 'cp')}" in said


@pytest.mark.parametrize("encoding", ["UTF-16-LE", "cp949"])
def test_killed_and_started_again(corpus, plain, expected_records, tmp_path, encoding):
    path = encoded(plain, tmp_path, "a.txt", encoding)
    flag = f"--input_file={path}"
    run_and_die(corpus, tmp_path / "out", flag, preparation=KILLS["in pass 1"])
    assert run(corpus, tmp_path / "out", flag).records == expected_records["a.txt"]


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl"])
def test_vocabularies_are_the_same(plain, tmp_path, name):
    expected = learn(plain / name, tmp_path / "plain")
    for encoding in ENCODINGS:
        path = encoded(plain, tmp_path, name, encoding)
        assert learn(path, tmp_path / encoding) == expected


@pytest.mark.parametrize("encoding", ["UTF-16-LE", "cp949"])
def test_a_bad_byte_is_named_with_its_line(corpus, plain, tmp_path, capsys, encoding):
    codec = ENCODINGS[encoding]
    bad = {"cp949": b"\xff", "utf-16-le": b"\x00\xdc"}[codec]
    lines = (plain / "a.txt").read_text().encode(codec).split("\n".encode(codec))
    path = tmp_path / "a.txt"
    content = "\n".encode(codec).join([*lines[:6], bad, *lines[6:]])
    path.write_bytes(MARKS.get(codec, b"") + content)
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
