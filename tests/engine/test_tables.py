"""Parquet files and saved data sets give the same records and vocabulary as the same JSON lines."""

import json
import os

import pytest

from run_scripts.create_data import main
from tests.support.create_data_runs import (
    KILLS,
    SHARDS,
    arguments,
    learn,
    one_line,
    run,
    run_and_die,
    run_small,
    run_tasks,
)

pa = pytest.importorskip("pyarrow")

from create_pretraining_data.engine import plain_text  # noqa: E402
from create_pretraining_data.engine.plain_lines import open_texts  # noqa: E402
from tests.support.table_files import (  # noqa: E402
    as_table,
    save_dataset,
    save_splits,
    write_arrow_file,
    write_arrow_stream,
    write_parquet,
)
from tokenization.vocab_learning import learn as learning  # noqa: E402

pytestmark = pytest.mark.usefixtures("small")


def test_a_column_of_another_name_is_read_for_a_vocabulary(tmp_path):
    path = tmp_path / "reviews.parquet"
    write_parquet(path, pa.table({"content": ["나는 학교에", "갔다"]}))
    (text,) = open_texts([str(path)], None, "content")
    assert b"".join(text.read_lines()).decode().split() == ["나는", "학교에", "갔다"]


FORMS = {
    "snappy": lambda path, table: write_parquet(path, table),
    "zstd": lambda path, table: write_parquet(path, table, compression="zstd"),
    "gzip": lambda path, table: write_parquet(path, table, compression="gzip"),
    "no dictionary": lambda path, table: write_parquet(path, table, use_dictionary=False),
    "stream": write_arrow_stream,
    "lz4 stream": lambda path, table: write_arrow_stream(path, table, compression="lz4"),
    "file": write_arrow_file,
    "data set": save_dataset,
    "splits": lambda path, table: save_splits(path, test=as_table(["뷁"] * 9), train=table),
}


@pytest.fixture(scope="module")
def documents(corpus):
    lines = (corpus / "text.jsonl").read_text().splitlines()
    return [json.loads(line)["text"] for line in lines]


@pytest.fixture(scope="module")
def same(corpus, documents, tmp_path_factory):
    """The same documents in every form, by its name; beside each what JSON lines become."""
    folder = tmp_path_factory.mktemp("forms")
    lines = [json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in documents]
    (folder / "lines.jsonl").write_text("".join(lines))
    for name, write in FORMS.items():
        write(folder / name, as_table(documents))
    return folder


@pytest.fixture(scope="module")
def expected(corpus, same, tmp_path_factory):
    flag = f"--input_file={same / 'lines.jsonl'}"
    return run_small(corpus, tmp_path_factory.mktemp("whole"), flag).records


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_bytes_of_json_lines(corpus, same, expected, tmp_path, form):
    assert run(corpus, tmp_path, f"--input_file={same / form}").records == expected


@pytest.mark.parametrize("form", ["snappy", "data set"])
@pytest.mark.parametrize("workers", [2, 3])
def test_for_every_number_of_workers(corpus, same, expected, tmp_path, form, workers):
    flags = f"--input_file={same / form}", f"--num_workers={workers}"
    assert run(corpus, tmp_path, *flags).records == expected


UNPACKING = """
from create_pretraining_data.engine import columns
die_at(columns, "_as_text", 120)
"""


@pytest.mark.parametrize(
    ("form", "moment"),
    [("snappy", "unpacking"), ("data set", "unpacking"), ("data set", "in pass 2")],
)
def test_killed_and_started_again(corpus, same, expected, tmp_path, form, moment):
    flag = f"--input_file={same / form}"
    preparation = {**KILLS, "unpacking": UNPACKING}[moment]
    run_and_die(corpus, tmp_path, flag, preparation=preparation)
    assert run(corpus, tmp_path, flag).records == expected


def test_what_is_unpacked_is_not_unpacked_again(corpus, same, expected, tmp_path, monkeypatch):
    flag = f"--input_file={same / 'snappy'}"
    run_and_die(corpus, tmp_path, flag, preparation=KILLS["in pass 1"])
    monkeypatch.setattr(plain_text, "read_column", lambda *_: pytest.fail("read again"))
    assert run(corpus, tmp_path, flag).records == expected


def test_several_tasks_share_the_work(corpus, same, expected, tmp_path, capsys):
    flag = f"--input_file={same / 'data set'}"
    assert run_tasks(corpus, tmp_path, flag).records == expected


def test_what_is_up_to_date_is_not_made_again(corpus, same, tmp_path, capsys):
    table = tmp_path / "a.parquet"
    table.write_bytes((same / "snappy").read_bytes())
    output = tmp_path / "out"
    flag = f"--input_file={table}"
    before = run(corpus, output, flag)
    capsys.readouterr()
    assert run(corpus, output, flag) == before
    assert "up to date" in capsys.readouterr().out
    write_parquet(table, as_table(["나 다\n라 마"] * 99))
    assert run(corpus, output, flag) != before


def test_text_and_tables_together(corpus, same, tmp_path):
    """One document a line, a row, or between blank lines."""
    files = ",".join([f"{corpus / 'text.txt'}", f"{same / 'stream'}", f"{same / 'lines.jsonl'}"])
    made = run(corpus, tmp_path / "mixed", f"--input_file={files}")
    described = json.loads(made.description)
    assert described["settings"]["--input_format"] == "jsonl, text"
    one = json.loads(run(corpus, tmp_path / "one").description)
    assert described["documents"] == 3 * one["documents"] and len(made.records) == SHARDS


def test_rows_without_a_text_are_left_out_and_counted(
    corpus, same, expected, documents, tmp_path, capsys
):
    rows = [None, *documents[:50], None, *documents[50:], None]
    path = tmp_path / "a.parquet"
    write_parquet(path, as_table(rows))
    output = tmp_path / "out"
    assert run(corpus, output, f"--input_file={path}").records == expected
    assert f"{path}: rows without a text, left out: 3" in capsys.readouterr().out


def test_vocabularies_are_the_same(same, documents, tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("\n\n".join(documents))
    made = {learn(same / form, tmp_path / form) for form in (*FORMS, "lines.jsonl")}
    assert made == {learn(text, tmp_path / "text")}


def test_a_sample_does_not_depend_on_the_form(same, documents, tmp_path, monkeypatch):
    """--most_megabytes is of the text, whatever it is compressed to."""
    read = learning.read_sample
    monkeypatch.setattr(
        learning, "read_sample", lambda texts, size, *rest: read(texts, size // 100, *rest)
    )
    made = {learn(same / form, tmp_path / form, "--most_megabytes=1") for form in FORMS}
    assert made == {learn(same / "lines.jsonl", tmp_path / "lines", "--most_megabytes=1")}


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
