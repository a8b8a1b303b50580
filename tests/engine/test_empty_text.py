"""Partly empty text makes the records of the rest; entirely empty text is one line of error."""

import json

import pytest

from run_scripts.create_data import main
from tests.support.create_data_runs import (
    CHUNK_BYTES,
    SHARDS,
    arguments,
    one_line,
    records,
    run,
)
from tests.support.crosses import slow

pytestmark = pytest.mark.usefixtures("small")

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


@pytest.mark.parametrize("workers", [slow(1), 2])
def test_json_lines_without_text_are_no_error(corpus, tmp_path, workers):
    empty = '{"text": ""}\n{"text": " \\n "}\n' * CHUNK_BYTES
    path = tmp_path / "text.jsonl"
    path.write_text(empty + (corpus / "text.jsonl").read_text() + "\n" + empty)
    flags = f"--input_file={path}", "--input_format=jsonl", f"--num_workers={workers}"
    assert main(arguments(corpus, tmp_path / "out", *flags)) == 0
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


def test_nothing_but_nulls_is_one_line(corpus, tmp_path, capsys):
    (tmp_path / "a.jsonl").write_text('{"text": null}\n' * 9)
    assert main(arguments(corpus, tmp_path / "out", f"--input_file={tmp_path}/a.jsonl")) == 1
    assert "the input must hold at least one sentence" in one_line(capsys.readouterr().err)


def test_a_long_last_document_before_empty_lines(corpus, tmp_path):
    text = tmp_path / "text.txt"
    long = "\n가 나" * CHUNK_BYTES + "\n" * CHUNK_BYTES
    text.write_text((corpus / "text.txt").read_text() + long)
    assert main(arguments(corpus, tmp_path / "out", f"--input_file={text}")) == 0
    assert len(list((tmp_path / "out").glob("*.tfrecord"))) == SHARDS


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_nothing_but_empty_chunks_is_one_line(corpus, tmp_path, capsys, flags):
    for number, content in enumerate(EMPTY.values()):
        (tmp_path / f"{number}.txt").write_text(content)
    argv = arguments(corpus, tmp_path / "out", f"--input_file={tmp_path}/*.txt", *complete(flags))
    for _ in range(2):  # a restart says the same
        assert main(argv) == 1
        assert "the input must hold at least one sentence" in one_line(capsys.readouterr().err)
