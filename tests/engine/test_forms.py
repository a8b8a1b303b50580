"""Text in every form that is read gives the records and the vocabulary of plain UTF-8 text."""

import codecs
import gzip
import json

import pytest

from create_pretraining_data.engine import plain_text, splitting, work_plan
from tests.support.create_data_runs import KILLS, learn, run, run_and_die, run_small, run_tasks
from tokenization.vocab_learning import learn as learning

pytest.importorskip("pyarrow")

from tests.support.table_files import (  # noqa: E402
    as_table,
    save_dataset,
    save_splits,
    write_arrow_file,
    write_arrow_stream,
    write_parquet,
)

pytestmark = pytest.mark.usefixtures("small")

MARKS = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


def as_text(documents):
    return "\n\n".join(documents)


def as_lines(documents):
    """JSON lines with Hangul, not escapes."""
    lines = (json.dumps({"text": text}, ensure_ascii=False) for text in documents)
    return "".join(f"{line}\n" for line in lines)


def encoded(form, codec="utf-8", pack=bytes):
    """Writes documents in a form (`as_text` or `as_lines`) and an encoding."""

    def write(path, documents):
        path.write_bytes(pack(MARKS.get(codec, b"") + form(documents).encode(codec)))

    return write


def table(write, **options):
    """Writes documents with a function of `table_files`."""
    return lambda path, documents: write(path, as_table(documents), **options)


def in_members(content):
    """A gzip file of several, one after the other."""
    return gzip.compress(content[:999]) + gzip.compress(content[999:])


# The name of a file, which says to which of `PLAIN` it is equal -> how it is written.
FORMS = {
    "gzip.txt.gz": encoded(as_text, pack=in_members),
    "UTF-16-LE.txt": encoded(as_text, "utf-16-le"),
    "UTF-16-BE.txt": encoded(as_text, "utf-16-be"),
    "cp949.txt": encoded(as_text, "cp949"),
    "cp949.txt.gz": encoded(as_text, "cp949", gzip.compress),
    "gzip.jsonl.gz": encoded(as_lines, pack=gzip.compress),
    "UTF-16-LE.jsonl": encoded(as_lines, "utf-16-le"),
    "UTF-16-BE.jsonl": encoded(as_lines, "utf-16-be"),
    "cp949.jsonl": encoded(as_lines, "cp949"),
    "snappy": table(write_parquet),
    "zstd": table(write_parquet, compression="zstd"),
    "gzip": table(write_parquet, compression="gzip"),
    "no dictionary": table(write_parquet, use_dictionary=False),
    "stream": table(write_arrow_stream),
    "lz4 stream": table(write_arrow_stream, compression="lz4"),
    "file": table(write_arrow_file),
    "data set": table(save_dataset),
    "splits": lambda path, documents: save_splits(
        path, test=as_table(["뷁"] * 9), train=as_table(documents)
    ),
}
PLAIN = {"plain.txt": encoded(as_text), "plain.jsonl": encoded(as_lines)}
# Of other sizes, so they are cut elsewhere.
OTHERS = {
    "escaped.jsonl": lambda path, documents: path.write_text(
        "\n\n".join(json.dumps({"id": 7, "text": text}) for text in documents)
    ),
    "marked.txt": encoded(as_text, "utf-8-sig"),
    "marked.txt.gz": encoded(as_text, "utf-8-sig", gzip.compress),
}


@pytest.fixture(scope="module")
def same(corpus, tmp_path_factory):
    """The folder with the same documents in every form."""
    folder = tmp_path_factory.mktemp("forms")
    documents = (corpus / "text.txt").read_text().split("\n\n")
    for name, write in {**FORMS, **PLAIN, **OTHERS}.items():
        write(folder / name, documents)
    return folder


@pytest.fixture(scope="module")
def expected(corpus, same, tmp_path_factory):
    """The records of each plain text."""
    return {
        name: run_small(corpus, tmp_path_factory.mktemp("plain"), f"--input_file={same / name}")
        for name in PLAIN
    }


def plain_of(name):
    return "plain.txt" if ".txt" in name else "plain.jsonl"


@pytest.mark.parametrize("form", FORMS)
def test_records_are_those_of_plain_text(corpus, same, expected, tmp_path, capsys, form):
    made = run(corpus, tmp_path, f"--input_file={same / form}")
    assert made.records == expected[plain_of(form)].records
    encoding = form.partition(".")[0][:6]
    is_named = encoding in ("UTF-16", "cp949")
    assert (f"{same / form}: read as {encoding}" in capsys.readouterr().out) == is_named


@pytest.mark.parametrize("choice", ["none", "lines"])
@pytest.mark.parametrize("form", OTHERS)
def test_records_of_one_chunk_are_the_same(corpus, same, tmp_path, monkeypatch, form, choice):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 10**9)
    monkeypatch.setattr(work_plan, "BUCKET_BYTES", 10**9)
    made = [
        run(corpus, tmp_path / name, f"--input_file={same / name}", f"--drop_duplicates={choice}")
        for name in (form, "plain.txt")
    ]
    assert made[0].records == made[1].records
    said = [json.loads(one.description) for one in made]
    for name in ("repeats", "repeated_lines", "documents_left_out", "documents", "pieces"):
        assert said[0][name] == said[1][name]


def test_vocabularies_are_that_of_plain_text(same, tmp_path):
    """Keys and escapes are no text."""
    names = (*FORMS, *PLAIN, *OTHERS)
    assert len({learn(same / name, tmp_path / name) for name in names}) == 1


def test_a_sample_does_not_depend_on_the_form(same, tmp_path, monkeypatch):
    """--most_megabytes is of the text, whatever it is compressed to."""
    read = learning.read_sample
    monkeypatch.setattr(
        learning, "read_sample", lambda texts, size, *rest: read(texts, size // 100, *rest)
    )
    names = (*FORMS, *PLAIN)
    made = {name: learn(same / name, tmp_path / name, "--most_megabytes=1") for name in names}
    assert all(made[name] == made[plain_of(name)] for name in FORMS)


UNPACKING = 'import run_scripts.create_data_plan as p; die_at(p, "write_json", 1)'
READING_ROWS = """
from create_pretraining_data.engine import columns
die_at(columns, "_as_text", 120)
"""
UNPACKED = ("gzip.txt.gz", "cp949.txt", "data set")


@pytest.mark.parametrize(
    ("form", "moment"), [*((form, UNPACKING) for form in UNPACKED), ("data set", READING_ROWS)]
)
def test_killed_while_it_is_unpacked(corpus, same, expected, tmp_path, form, moment):
    """Workers and tasks read what is unpacked, too."""
    flag, records = f"--input_file={same / form}", expected[plain_of(form)].records
    run_and_die(corpus, tmp_path / "one", flag, preparation=moment)
    assert run(corpus, tmp_path / "one", flag, "--num_workers=2").records == records
    if moment == UNPACKING:
        assert run_tasks(corpus, tmp_path / "tasks", flag).records == records


@pytest.mark.parametrize("form", UNPACKED)
def test_what_is_unpacked_is_not_unpacked_again(
    corpus, same, expected, tmp_path, monkeypatch, form
):
    flag = f"--input_file={same / form}"
    run_and_die(corpus, tmp_path, flag, preparation=KILLS["in pass 1"])
    monkeypatch.setattr(plain_text, "open_plain", lambda *_: pytest.fail("read again"))
    assert run(corpus, tmp_path, flag).records == expected[plain_of(form)].records
