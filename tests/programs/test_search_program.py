"""The programs for search: what they read, find, print or keep."""

import importlib.util
import io
import json
import sys

import numpy as np
import pytest

from finetuning.similarity.approximate import make_index, search_index
from finetuning.similarity.ranking import Found
from run_scripts.tools import search as search_program
from run_scripts.tools.retrieval import main as retrieval
from tests.support.models.model_folders import write_folder
from tests.support.refusals import refused
from tests.support.task_data import squad_content, write_questions

TEXTS = ["배송이 너무 늦어요", "날씨가 좋네요", "택배가 안 와요", "배송이 너무 늦어요", "비가 온다"]


def run(*flags):
    return search_program.main(["search", *flags])


def lines(capsys):
    return [line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line]


def test_the_program_keeps_vectors_until_the_file_changes(tmp_path, capsys, monkeypatch):
    write_folder(tmp_path / "model", task="similarity")
    corpus = tmp_path / "faq.csv"
    corpus.write_text("질문,답\nthe book,네\n나는 학교에 갔다,네\n")
    flags = (f"--corpus={corpus}", f"--model_dir={tmp_path}/model", "--top=1", "--query=the book")
    assert run(*flags) == 0
    assert capsys.readouterr().out == (
        f"columns of {corpus}: text '질문' (--text_column names another)\n1.000\tthe book\n"
    )
    kept = tmp_path / "faq.csv.vectors.npz"
    first = kept.read_bytes()
    partial = tmp_path / ".faq.csv.vectors.npz.0123.partial"  # what a killed program left
    partial.touch()
    monkeypatch.setattr(search_program.np, "savez", None)  # nothing is computed again
    assert run(*flags) == 0 and lines(capsys) == [["1.000", "the book"]]
    monkeypatch.undo()
    corpus.write_text("질문,답\nthe book?,네\nthe book,네\n")
    assert run(*flags) == 0 and lines(capsys) == [["1.000", "the book"]]
    assert kept.read_bytes() != first and not partial.exists()
    for damaged in (b"damaged", first[: len(first) // 2], b"PK\x03\x04"):
        kept.write_bytes(damaged)
        monkeypatch.setattr(sys, "stdin", io.StringIO("the book\n\n"))
        assert run(*flags[:3]) == 0
        assert lines(capsys) == [["1.000", "the book"]]


ROWS = [("the book", "그\n책"), ("나는 학교에 갔다", ""), ("red", "0")]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_another_column_is_shown(tmp_path, capsys, fails, ending):
    """After the text, in one line; there may be none."""
    write_folder(tmp_path / "model", task="similarity")
    corpus = tmp_path / f"faq.{ending}"
    if ending == "csv":
        rows = [["질문", "답"], *([q, f'"{a}"'] for q, a in ROWS)]
        corpus.write_text("".join(",".join(row) + "\n" for row in rows))
    else:
        answers = {"": None, "0": 0}
        objects = [{"질문": q, "meta": {"답": answers.get(a, a)}} for q, a in ROWS]
        corpus.write_text("".join(json.dumps(each) + "\n" for each in objects))
    flags = (f"--corpus={corpus}", f"--model_dir={tmp_path}/model", "--query=the book")
    shown = "--show_column=" + {"csv": "답", "jsonl": "meta.답"}[ending]
    assert run(*flags, shown) == 0
    found = lines(capsys)
    assert found[0] == ["1.000", "the book", "그 책"]
    assert sorted(row[1:] for row in found) == sorted([q, " ".join(a.split())] for q, a in ROWS)
    assert run(*flags) == 0 and [row[1:] for row in lines(capsys)] == [row[1:2] for row in found]
    said = f"--show_column must name a column of {corpus}: 질문, "
    fails(lambda: run(*flags, "--show_column=답변"), said)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_rows_without_a_text_are_left_out(tmp_path, capsys, fails, ending):
    write_folder(tmp_path / "model", task="similarity")
    corpus, empty = tmp_path / f"faq.{ending}", {"csv": ("", " "), "jsonl": (None, "")}[ending]

    def write(*texts):
        rows = [{"질문": text, "답": f"답 {number}"} for number, text in enumerate(texts)]
        if ending == "csv":
            rows = [",".join(row) for row in (rows[0], *(row.values() for row in rows))]
        else:
            rows = map(json.dumps, rows)
        corpus.write_text("\n".join(rows) + "\n")

    flags = (f"--corpus={corpus}", f"--model_dir={tmp_path}/model", "--query=red", "--top=1")
    write(empty[0], "the book", empty[1], "red")
    assert run(*flags, "--show_column=답") == 0
    _, said, found = capsys.readouterr().out.splitlines()
    assert said == f"{corpus}: rows without a text, left out: 2"
    assert found == "1.000\tred\t답 3"  # of its own row
    write("the book", "red")
    assert run(*flags) == 0 and "left out" not in capsys.readouterr().out
    write(*empty)
    fails(lambda: run(*flags), f"{corpus} must hold a text in column '질문'. Received: none")


@pytest.mark.parametrize(
    ("file", "content", "flags", "message"),
    [
        (
            "jsonl",
            '{"text": "b"}\n{"text": 3}',
            (),
            "must be a string that is not empty. Received: 3",
        ),
        ("jsonl", '{"질문": "b"}\n{"a": "b"}', (), "line 2 must have '질문'"),
        ("txt", "책\n", ("--text_column=a",), "--text_column is for files that end in .csv"),
        ("txt", "책\n", ("--show_column=a",), "--show_column is for files that end in .csv"),
        ("txt", "책\n", ("--query= ",), "error: "),
        ("txt", "\n", (), "error: "),
    ],
)
def test_what_search_refuses(tmp_path, fails, file, content, flags, message):
    (tmp_path / f"a.{file}").write_text(content)
    fails(lambda: run(f"--corpus={tmp_path}/a.{file}", "--query=red", *flags), message)


@pytest.mark.parametrize("change", ["pooling", "vocabulary"])
def test_the_program_computes_anew_when_settings_change(tmp_path, capsys, change):
    """Not the weights, but what is made of them."""
    write_folder(tmp_path / "model", task="similarity")
    (tmp_path / "a.txt").write_text("the book is red\n나는 학교에 갔다\nbook red\n")
    flags = (f"--corpus={tmp_path}/a.txt", f"--model_dir={tmp_path}/model", "--query=the book")
    assert run(*flags) == 0
    name, old, new = {
        "pooling": ("finetuning.json", '"mean"', '"max"'),
        "vocabulary": ("vocab.txt", "red\n##s\n", "##s\nred\n"),
    }[change]
    path = tmp_path / "model" / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    capsys.readouterr()
    assert run(*flags) == 0
    found = lines(capsys)
    (tmp_path / "a.txt.vectors.npz").unlink()
    assert run(*flags) == 0 and lines(capsys) == found


def test_the_program_reads_lines(tmp_path, capsys, fails, monkeypatch):
    (tmp_path / "a.txt").write_text("날씨가 좋다\n\n배송이 늦다\n")
    assert run(f"--corpus={tmp_path}/a.txt", "--query=날씨가 좋다") == 0
    assert [row[1] for row in lines(capsys)] == ["날씨가 좋다", "배송이 늦다"]
    for errors in ("strict", "surrogateescape"):  # the latter is Python's where LANG=C.UTF-8
        stdin = io.TextIOWrapper(io.BytesIO(b"\xb9\n"), encoding="utf-8", errors=errors)
        monkeypatch.setattr(sys, "stdin", stdin)
        fails(lambda: run(f"--corpus={tmp_path}/a.txt"), "standard input must be UTF-8")


def test_retrieval_of_questions(tmp_path, capsys):
    path = write_questions(tmp_path / "q.json", squad_content())
    assert retrieval(["retrieval", f"--questions={path}"]) == 0
    rows = lines(capsys)
    ways = ["vectors", "BM25 on tokens", "hybrid of both", "TF-IDF on characters"]
    assert [row[0] for row in rows[1:]] == ways
    assert rows[0][1:3] == ["recall_at_1", "recall_at_10"]
    assert all(row[2] == "100.0" for row in rows[1:])  # of two texts


def test_retrieval_among_some_articles(tmp_path, prints, fails):
    """Their questions among their texts."""
    content = squad_content()
    (first,) = content["data"]
    content["data"].append({"title": "u", "paragraphs": first["paragraphs"][1:]})
    given = ["retrieval", f"--questions={write_questions(tmp_path / 'q.json', content)}"]
    assert "1 queries, 1 texts" in prints(lambda: retrieval([*given, "--articles=1:2"]))
    for argv, message in (
        ([*given, "--articles=2:1"], "--articles must be two numbers"),
        ([*given, "--articles=1:3"], "must have at least 3 articles"),
        ([*given, "--articles=1:2", "--max_seq_length=513"], "at most max_position_embeddings"),
        (["retrieval"], "error: "),
    ):
        fails(lambda argv=argv: retrieval(argv), message)


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="needs the extra 'search'")
def test_an_approximate_index_is_kept(tmp_path, capsys, monkeypatch):
    """In a small corpus it finds what the exact search finds, with the same cosines."""
    corpus = tmp_path / "a.txt"
    corpus.write_text("".join(f"{text} {number}\n" for number in range(40) for text in TEXTS))
    flags = (f"--corpus={corpus}", "--query=배송이 너무 늦어요 7", "--top=5")
    assert run(*flags) == 0
    exact = lines(capsys)
    assert run(*flags, "--approximate") == 0
    assert lines(capsys) == exact
    monkeypatch.setattr(search_program, "make_index", None)  # the kept one is read
    assert run(*flags, "--approximate") == 0
    assert lines(capsys) == exact
    nothing = Found(np.array([[3, -1]]), np.array([[0.5, -9.0]]))  # FAISS's sign for no neighbour
    monkeypatch.setattr(search_program, "search_index", lambda *_: nothing)
    assert run(*flags, "--approximate") == 0 and len(lines(capsys)) == 1
    assert (tmp_path / "a.txt.index.npz").is_file()


def test_an_approximate_index_refuses_nan():
    """Before the library is needed."""
    nan = np.full((3, 3), np.nan, np.float32)
    for find in (lambda: make_index(nan), lambda: search_index(None, nan, 2)):
        with refused("vectors must be finite numbers"):
            find()


def test_an_approximate_index_needs_its_library(tmp_path, fails, monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    (tmp_path / "a.txt").write_text("날씨가 좋다\n")
    argv = f"--corpus={tmp_path}/a.txt", "--query=x", "--approximate"
    fails(lambda: run(*argv), "an approximate index needs FAISS")
