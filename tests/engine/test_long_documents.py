"""Random next sentences come from other documents even where a chunk is a single one."""

import json
import random
import warnings

import pytest

from create_pretraining_data.engine import passes, splitting
from run_scripts.create_data import main
from tests.support.create_data_runs import CHUNK_BYTES, SYLLABLES, arguments, records

pytestmark = pytest.mark.usefixtures("small")


def book(number, size=CHUNK_BYTES):
    """Lines of a syllable that no other book has."""
    rng, lines, length = random.Random(number), [], 0
    while length < size:
        words = (SYLLABLES[number] * rng.randint(1, 4) for _ in range(rng.randint(3, 8)))
        lines.append(" ".join(words))
        length += len(lines[-1].encode()) + 1
    return "\n".join(lines)


def sources(folder):
    """From the place of a record's sentence label to the pairs of books that A and B are of."""
    pieces = (folder / "vocab.txt").read_text().split("\n")
    found = {0: [], 1: []}
    for features in records(folder / "out"):
        ids = features["input_ids"].int64_list.value
        first, second = features["segment_lengths"].int64_list.value
        books = [
            {SYLLABLES.index(pieces[piece][-1]) for piece in part}
            for part in (ids[1 : first - 1], ids[first : first + second - 1])
        ]
        (a,), (b,) = books  # a segment is of one book
        found[features["next_sentence_labels"].int64_list.value[0]].append((a, b))
    return found


@pytest.fixture
def make(corpus, tmp_path, capsys):
    """A function that makes records of files; returns `sources` and what was warned of."""
    # All syllables: that of the corpus lacks one.
    vocabulary = (corpus / "vocab.txt").read_text() + SYLLABLES[0] + "\n"
    (tmp_path / "vocab.txt").write_text(vocabulary)

    def call(contents, *flags):
        names = [tmp_path / f"{number}.txt" for number in range(len(contents))]
        for name, content in zip(names, contents, strict=True):
            name.write_text(content)
        flags = (
            f"--input_file={','.join(map(str, names))}", f"--vocab_file={tmp_path}/vocab.txt",
            "--masking=dynamic", "--objective=nsp", *flags,
        )  # fmt: skip
        capsys.readouterr()
        assert main(arguments(corpus, tmp_path / "out", *flags)) == 0
        # In one pass, rows this short lose much at their ends.
        said = [
            line
            for line in capsys.readouterr().err.splitlines()
            if line.startswith("warning: ") and "of the tokens are in no row" not in line
        ]
        return sources(tmp_path), said

    return call


def check_random(found, books, least):
    assert all(a == b for a, b in found[0])
    assert all(a != b for a, b in found[1])
    assert 0.4 < len(found[1]) / (len(found[0]) + len(found[1])) < 0.6
    drawn = {a: {b for first, b in found[1] if first == a} for a, _ in found[1]}
    assert len(drawn) == books
    assert min(map(len, drawn.values())) >= least


@pytest.mark.parametrize("workers", [1, 2])
def test_each_file_a_book(make, workers):
    books = [book(number, int(CHUNK_BYTES * (1 + number / 13))) for number in range(13)]
    found, said = make(books, f"--num_workers={workers}")
    check_random(found, 13, passes.EXCERPTS - 1)
    assert said == []


def test_each_line_a_book(make):
    lines = [json.dumps({"text": book(k)}, ensure_ascii=False) for k in range(10)]
    found, said = make(["\n".join(lines)], "--input_format=jsonl")
    check_random(found, 10, passes.EXCERPTS - 1)
    assert said == []


def test_books_that_are_cut(make, monkeypatch):
    """Chunks within a book, some that share one with another book."""
    monkeypatch.setattr(splitting, "LONGEST_SEARCH", 2 * CHUNK_BYTES)
    lengths = (6, 1, 9, 0.3, 0.3, 7)
    books = [book(number, int(CHUNK_BYTES * length)) for number, length in enumerate(lengths)]
    found, said = make(["\n\n".join(books)])
    check_random(found, len(books), 1)  # of a short book: those of its chunk
    (line,) = said
    assert "are cut between two sentences" in line and "put a blank line" in line


def test_one_book_alone_says_so(make, monkeypatch):
    monkeypatch.setattr(splitting, "LONGEST_SEARCH", 2 * CHUNK_BYTES)
    found, said = make([book(3, 9 * CHUNK_BYTES)])
    assert {pair for pairs in found.values() for pair in pairs} == {(3, 3)}
    cut, alone = said
    assert "100% of the random next sentences come from the same document" in alone
    assert "put a blank line between documents" in alone


def test_documents_among_others_are_made_as_ever(corpus, tmp_path, monkeypatch):
    """Only a chunk with a single document needs others."""
    monkeypatch.setattr(passes, "read_other_documents", lambda *_: pytest.fail("read"))
    with warnings.catch_warnings(action="error"):
        assert main(arguments(corpus, tmp_path)) == 0
