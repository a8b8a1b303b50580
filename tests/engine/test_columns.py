"""Tables: every type of text, nested columns, large files; which rows are read; what is refused."""

import json
import os
import resource
import sys

import pytest

from bert_common.errors import InputError
from create_pretraining_data.engine.columns import read_column, table_kind
from run_scripts.create_data import main
from tests.support.create_data_runs import SHARDS, arguments, one_line, run
from tests.support.paths import run_python

pa = pytest.importorskip("pyarrow")

from tests.support.table_files import (  # noqa: E402
    as_table,
    save_dataset,
    write_arrow_stream,
    write_parquet,
)

pytestmark = pytest.mark.usefixtures("small")

TEXTS = ["나는 학교에 갔다.", None, "", "비가 온다.\n우산을 폈다.", "나는 학교에 갔다."]
WRITERS = {"parquet": write_parquet, "stream": write_arrow_stream}


def read(path, key="text"):
    head = path.read_bytes()[:8]
    return [text for text, _ in read_column(str(path), table_kind(head), key)]


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), None],
    ids=lambda kind: str(kind or "dictionary"),
)
def test_every_type_of_text(tmp_path, form, kind):
    column = pa.array(TEXTS).dictionary_encode()
    if kind is not None:
        encode = str.encode if "binary" in str(kind) else str
        column = pa.array([text if text is None else encode(text) for text in TEXTS], kind)
    WRITERS[form](tmp_path / "a", pa.table({"n": range(5), "text": column}))
    assert read(tmp_path / "a") == TEXTS


@pytest.mark.parametrize("form", WRITERS)
def test_a_column_inside_another(tmp_path, form):
    rows = [{"meta": {"id": 1, "body": "가"}}, {"meta": None}, {"meta": {"id": 2, "body": None}}]
    WRITERS[form](tmp_path / "a", pa.Table.from_pylist(rows))
    assert read(tmp_path / "a", "meta.body") == ["가", None, None]
    WRITERS[form](tmp_path / "b", as_table(["가"], "meta.body"))  # a name with a dot
    assert read(tmp_path / "b", "meta.body") == ["가"]


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("text", r"a must have a column 'text' \(--text_key .*Received: columns document, n, m, l"),
        ("n", r"'n', must hold texts .*Received: int64"),
        ("m", r"'m', must hold texts .*Received: struct"),
        ("l", r"'l', must hold texts .*Received: list<"),
        ("m.y", r"column 'm.y' .*Received: columns x"),
        ("document.y", r"column 'document.y'"),
    ],
)
def test_a_missing_column_is_named_with_those_that_exist(tmp_path, form, key, message):
    columns = {"document": ["가"], "n": [1], "m": [{"x": "가"}], "l": [["가", "나"]]}
    WRITERS[form](tmp_path / "a", pa.table(columns))
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a", key)


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize("left", [0.3, 0.97])
def test_a_file_that_is_cut_off(tmp_path, form, left):
    table = as_table([f"나는 {number}번 학교에 갔다." for number in range(400)])
    WRITERS[form](tmp_path / "a", table)
    content = (tmp_path / "a").read_bytes()
    (tmp_path / "a").write_bytes(content[: int(left * len(content))])
    with pytest.raises(InputError, match="a must be a complete (Parquet|Arrow stream)"):
        read(tmp_path / "a")


def test_a_stream_without_an_end(tmp_path):
    """The last batches may be missing: a save that was killed."""
    write_arrow_stream(tmp_path / "a", as_table(TEXTS))
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-8])
    with pytest.raises(InputError, match="Received: one without an end"):
        read(tmp_path / "a")


def test_bytes_that_are_no_text_name_their_row(tmp_path):
    write_parquet(tmp_path / "a", pa.table({"text": [b"a", "가".encode(), b"\xb0\xa1"]}))
    with pytest.raises(InputError, match="a, row 3: the text must be UTF-8"):
        read(tmp_path / "a")


@pytest.mark.parametrize("form", WRITERS)
def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch, form):
    WRITERS[form](tmp_path / "a", as_table(TEXTS))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install -e '\.\[parquet\]'"):
        read(tmp_path / "a")


MEMORY = """
import resource, sys
import pyarrow.parquet, pyarrow.compute
from create_pretraining_data.engine.columns import read_column
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
size = sum(len(text) for text, _ in read_column(sys.argv[1], "Parquet", "text"))
print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("repeated", [False, True])
def test_the_memory_for_one_huge_group_of_rows_is_bounded(tmp_path, repeated):
    """A hundred megabytes in one row group; a repeated text is stored once."""
    text, count = "가나다라" * 2500, 3500  # 30 kB each
    texts = [text + ("" if repeated else str(number)) for number in range(count)]
    write_parquet(tmp_path / "a", as_table(texts), row_group_size=count, compression="zstd")
    done = run_python("-c", MEMORY, tmp_path / "a", check=True)
    size, kilobytes = map(int, done.stdout.split())
    assert size == sum(map(len, texts))
    assert kilobytes < 60_000 < resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_saved_data_set_is_read_by_datasets_too(tmp_path):
    datasets = pytest.importorskip("datasets")
    save_dataset(tmp_path / "a", as_table(["가", "나"]))
    assert datasets.load_from_disk(tmp_path / "a")["text"] == ["가", "나"]


@pytest.fixture(scope="module")
def documents(corpus):
    lines = (corpus / "text.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


def test_what_is_up_to_date_is_not_made_again(corpus, documents, tmp_path, capsys):
    table = tmp_path / "a.parquet"
    write_parquet(table, as_table(documents))
    output = tmp_path / "out"
    flag = f"--input_file={table}"
    before = run(corpus, output, flag)
    capsys.readouterr()
    assert run(corpus, output, flag) == before
    assert "up to date" in capsys.readouterr().out
    write_parquet(table, as_table(["나 다\n라 마"] * 99))
    assert run(corpus, output, flag) != before


def test_text_and_tables_together(corpus, documents, tmp_path):
    """One document a line, a row, or between blank lines."""
    write_arrow_stream(tmp_path / "a.arrow", as_table(documents))
    files = f"{corpus}/text.txt,{tmp_path}/a.arrow,{corpus}/text.jsonl"
    made = run(corpus, tmp_path / "mixed", f"--input_file={files}")
    described = json.loads(made.description)
    assert described["settings"]["--input_format"] == "jsonl, text"
    one = json.loads(run(corpus, tmp_path / "one").description)
    assert described["documents"] == 3 * one["documents"] and len(made.records) == SHARDS


def test_rows_without_a_text_are_left_out_and_counted(corpus, documents, tmp_path, capsys):
    rows = [None, *documents[:50], None, *documents[50:], None]
    path, whole = tmp_path / "a.parquet", tmp_path / "whole.parquet"
    write_parquet(path, as_table(rows))
    write_parquet(whole, as_table(documents))
    made = run(corpus, tmp_path / "out", f"--input_file={path}")
    assert f"{path}: rows without a text, left out: 3" in capsys.readouterr().out
    assert made.records == run(corpus, tmp_path / "whole", f"--input_file={whole}").records


@pytest.mark.parametrize("name", ["a.parquet", "A.ARROW"])
@pytest.mark.parametrize(
    ("content", "received"),
    [("version https://git-lfs.github.com/spec/v1\n", "begins with b'version '"), ("", "an empty")],
)
def test_a_table_that_is_none_is_not_read_as_text(
    corpus, tmp_path, capsys, name, content, received
):
    """A pointer of Git LFS would be learned, and what a failed download lacks would be missing."""
    folder = tmp_path / "text"
    folder.mkdir()
    (folder / "a.txt").write_text("가 나\n다 라\n")
    (folder / name).write_text(content)
    assert main(arguments(corpus, tmp_path, f"--input_file={folder}")) == 1
    line = one_line(capsys.readouterr().err)
    assert f"{name} must be a Parquet or Arrow file, as its name says. Received: " in line
    assert received in line and os.listdir(tmp_path) == ["text"]
