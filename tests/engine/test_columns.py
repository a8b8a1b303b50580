"""Columns of texts: every type of text, nested ones, large files; what is refused."""

import resource
import sys

import pytest

from tests.support.paths import run_python

pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402

from bert_common.errors import InputError  # noqa: E402
from create_pretraining_data.engine.columns import read_column, table_kind  # noqa: E402
from tests.support.table_files import as_table, save_dataset, write_arrow_stream, write_parquet  # noqa: E402

TEXTS = ["나는 학교에 갔다.", None, "", "비가 온다.\n우산을 폈다.", "나는 학교에 갔다."]
WRITERS = {"parquet": write_parquet, "stream": write_arrow_stream}


def read(path, key="text"):
    head = path.read_bytes()[:8]
    return [text for text, _ in read_column(str(path), table_kind(head), key)]


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), "dictionary"], ids=str
)
def test_every_type_of_text(tmp_path, form, kind):
    if kind == "dictionary":
        column = pa.array(TEXTS).dictionary_encode()
    else:
        column = pa.array([text and text.encode() for text in TEXTS], kind)
        column = pa.array(TEXTS, kind) if "string" in str(kind) else column
    if form == "parquet":
        pq.write_table(pa.table({"n": range(5), "text": column}), tmp_path / "a")
    else:
        write_arrow_stream(tmp_path / "a", pa.table({"n": range(5), "text": column}), rows=5)
    assert read(tmp_path / "a") == [t if t is None else str(t) for t in TEXTS]


@pytest.mark.parametrize("form", WRITERS)
def test_a_column_inside_another(tmp_path, form):
    rows = [{"meta": {"id": 1, "body": "가"}}, {"meta": None}, {"meta": {"id": 2, "body": None}}]
    WRITERS[form](tmp_path / "a", pa.Table.from_pylist(rows))
    assert read(tmp_path / "a", "meta.body") == ["가", None, None]
    WRITERS[form](tmp_path / "b", as_table(["가"], "meta.body"))  # a name with a dot
    assert read(tmp_path / "b", "meta.body") == ["가"]


@pytest.mark.parametrize("form", WRITERS)
def test_a_missing_column_is_named_with_those_that_exist(tmp_path, form):
    WRITERS[form](tmp_path / "a", pa.table({"document": ["가"], "label": [1], "m": [{"x": "가"}]}))
    message = r"a must have a column 'text' \(--text_key .*Received: columns document, label, m"
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a")
    with pytest.raises(InputError, match=r"'label', must hold texts .*Received: int64"):
        read(tmp_path / "a", "label")
    with pytest.raises(InputError, match=r"'m', must hold texts .*Received: struct"):
        read(tmp_path / "a", "m")
    with pytest.raises(InputError, match=r"column 'm.y' .*Received: columns x"):
        read(tmp_path / "a", "m.y")
    with pytest.raises(InputError, match=r"column 'document.y'"):
        read(tmp_path / "a", "document.y")


def test_lists_of_sentences_are_refused_as_in_json_lines(tmp_path):
    write_parquet(tmp_path / "a", pa.table({"text": [["가", "나"]]}))
    with pytest.raises(InputError, match="must hold texts .*Received: list<"):
        read(tmp_path / "a")


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
