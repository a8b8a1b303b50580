"""Columns and rows of tables: which are read, and what is no table."""

import json
import os

import pytest

from run_scripts.create_data import main
from tests.support.create_data_runs import SHARDS, arguments, one_line, run

pa = pytest.importorskip("pyarrow")

from create_pretraining_data.engine.plain_lines import open_texts  # noqa: E402
from tests.support.table_files import as_table, write_arrow_stream, write_parquet  # noqa: E402

pytestmark = pytest.mark.usefixtures("small")


def test_a_column_of_another_name_is_read_for_a_vocabulary(tmp_path):
    path = tmp_path / "reviews.parquet"
    write_parquet(path, pa.table({"content": ["나는 학교에", "갔다"]}))
    (text,) = open_texts([str(path)], None, "content")
    assert b"".join(text.read_lines()).decode().split() == ["나는", "학교에", "갔다"]


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
