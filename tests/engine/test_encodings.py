"""What is no text is refused by its line or kind; what is empty is left out, unless all is."""

import bz2
import codecs
import functools
import gzip
import json
import lzma
import shutil

import pytest

from create_pretraining_data.engine.plain_text import recognise
from run_scripts.build_vocab import main as build_vocab
from run_scripts.create_data import main
from tests.support.create_data_runs import CHUNK_BYTES, SHARDS, arguments, one_line, records, run

pytestmark = pytest.mark.usefixtures("small")


def check_refusal(corpus, tmp_path, capsys, path, message):
    """By both programs that read text."""
    flag = f"--input_file={path}"
    assert main(arguments(corpus, tmp_path / "out", flag)) == 1
    assert one_line(capsys.readouterr().err).startswith(message)
    assert build_vocab(["p", flag, f"--output_dir={tmp_path}/vocab", "--analyser=none"]) == 1
    assert one_line(capsys.readouterr().err).startswith(message)
    assert not (tmp_path / "vocab" / "vocab.txt").exists()


@pytest.mark.parametrize(
    ("codec", "mark", "bad"),
    [("utf-16-le", codecs.BOM_UTF16_LE, b"\x00\xdc"), ("cp949", b"", b"\xff")],
)
def test_a_bad_byte_is_named_with_its_line(corpus, tmp_path, capsys, codec, mark, bad):
    lines = (corpus / "text.txt").read_text().encode(codec).split("\n".encode(codec))
    path = tmp_path / "a.txt"
    path.write_bytes(mark + "\n".encode(codec).join([*lines[:6], bad, *lines[6:]]))
    check_refusal(corpus, tmp_path, capsys, path, f"error: {path}, line 7: the text must be ")


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
    check_refusal(corpus, tmp_path, capsys, path, f"{message}else. Received: {PACKED[kind]}")


def test_text_that_begins_almost_as_a_packed_file_is_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"BZh is how it begins.\n" * 20)
    assert recognise(str(path)).encoding == "utf-8"


DAMAGED = {
    "a.gz must be a complete gzip file": gzip.compress("가 나\n".encode() * 999)[:-9],
    "b.gz must be a complete gzip file": gzip.compress("가 나\n".encode() * 999)[:-6] + b"abcdef",
    "a.json, line 3: a line must be a JSON object": b'{"text": "a"}\n\n{"title": "a"}\n',
    "a.json, line 2: the text must be UTF-8": b'{"text": "a"}\n{"text": "\xff',
    "a.txt, line 2: the text must be UTF-8": "공부했다\n".encode() + b"\xff\xea\xb0",
}


@pytest.mark.parametrize("message", DAMAGED)
def test_damaged_text_is_one_line(corpus, tmp_path, capsys, message):
    path = tmp_path / message.split()[0].rstrip(",")
    path.write_bytes(DAMAGED[message])
    check_refusal(corpus, tmp_path, capsys, path, f"error: {tmp_path}/{message}")
    assert not list(tmp_path.glob("out/*"))


# Each fills a whole chunk, or the rest of the last one.
EMPTY = {
    "white space": " \n\t\n" * CHUNK_BYTES,
    "byte-order mark": "\ufeff",
    "zero width": "\u200b\n" * CHUNK_BYTES,
    "no bytes": "",
}
FLAGS = (
    (), ("--packing",), ("--masking=dynamic",), ("--packing", "--masking=dynamic"),
    ("--objective=sop",), ("--objective=none",),
)  # fmt: skip


def complete(flags):
    return [flag if "=" in flag else f"{flag}=true" for flag in flags]


@pytest.mark.parametrize(
    "flags",
    [pytest.param(f, marks=() if len(f) == 2 else pytest.mark.slow, id=" ".join(f)) for f in FLAGS],
)
def test_chunks_without_a_sentence_are_no_error(corpus, tmp_path, capsys, flags):
    files = []
    for number, content in enumerate(EMPTY.values()):
        files += [tmp_path / f"{number}.txt", corpus / "text.txt"]
        files[-2].write_text(content)
    names = ",".join(map(str, [*files, files[2], files[-2]]))
    argv = arguments(corpus, tmp_path / "out", f"--input_file={names}", *complete(flags))
    assert main(argv) == 0
    said = capsys.readouterr().err.splitlines()  # the corpus is in it several times
    assert all("repeat earlier ones" in line for line in said if "in no row" not in line)
    description = json.loads((tmp_path / "out" / "ko.json").read_text())
    assert description["documents"] == len(EMPTY) * 202
    assert description["examples"] == len(records(tmp_path / "out"))


def test_json_lines_without_text_are_no_error(corpus, tmp_path):
    empty = '{"text": ""}\n{"text": " \\n "}\n' * CHUNK_BYTES
    path = tmp_path / "text.jsonl"
    path.write_text(empty + (corpus / "text.jsonl").read_text() + "\n" + empty)
    run(corpus, tmp_path / "out", f"--input_file={path}", "--num_workers=2")
    assert len(records(tmp_path / "out")) > 100


@pytest.mark.parametrize("choice", ["none", "lines"])
def test_null_in_json_lines_is_left_out_and_counted(corpus, tmp_path, capsys, choice):
    """Some of 250 nulls fill whole chunks."""
    lines = (corpus / "text.jsonl").read_text().splitlines()
    null = json.dumps({"id": "x" * 60, "text": None})
    path = tmp_path / "a.jsonl"
    path.write_text(
        "\n".join([*[null] * 149, *(f"{line}\n{null}" for line in lines[:101]), *lines[101:]])
    )
    flags = f"--input_file={path}", f"--drop_duplicates={choice}", "--num_workers=2"
    found = json.loads(run(corpus, tmp_path / "out", *flags).description)
    assert found["documents"] == 202
    assert found["documents_left_out"] == {"no text": 250, "one word": 2}
    assert "202 documents (250 of no text, 2 of one word left out)" in capsys.readouterr().out


def test_a_long_last_document_before_empty_lines(corpus, tmp_path):
    text = tmp_path / "text.txt"
    long = "\n가 나" * CHUNK_BYTES + "\n" * CHUNK_BYTES
    text.write_text((corpus / "text.txt").read_text() + long)
    assert len(run(corpus, tmp_path / "out", f"--input_file={text}").records) == SHARDS


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_nothing_but_empty_chunks_is_one_line(corpus, tmp_path, capsys, flags):
    for number, content in enumerate(EMPTY.values()):
        (tmp_path / f"{number}.txt").write_text(content)
    (tmp_path / "4.jsonl").write_text('{"text": null}\n' * 9)
    argv = arguments(corpus, tmp_path / "out", f"--input_file={tmp_path}/*.*", *complete(flags))
    for _ in range(2):  # a restart says the same
        assert main(argv) == 1
        assert "the input must hold at least one sentence" in one_line(capsys.readouterr().err)
