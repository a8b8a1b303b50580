"""Text files are split into chunks of documents, and these are tokenized."""

import io
import json
import os
import random
import tracemalloc

import numpy as np
import pytest

from create_pretraining_data.engine import splitting
from create_pretraining_data.engine.splitting import InputFile, cut_into_chunks, read_chunk_text
from create_pretraining_data.instances.layout_checks import find_layout_problems
from create_pretraining_data.instances.make_instances import CorpusStatistics
from create_pretraining_data.instances.text import tokenize_documents
from tests.support.refusals import refused
from tests.support.sequences import CodePoints


@pytest.fixture
def write(tmp_path):
    """A function that writes a file; returns it as an `InputFile`."""

    def call(content, name="text.txt", input_format="text"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return InputFile(str(path), str(path), os.path.getsize(path), input_format)

    return call


@pytest.fixture
def set_sizes(monkeypatch):
    """A function that sets the size of chunks, and how far the end of a document is searched."""

    def call(chunk, search=splitting.LONGEST_SEARCH):
        monkeypatch.setattr(splitting, "CHUNK_BYTES", chunk)
        monkeypatch.setattr(splitting, "LONGEST_SEARCH", search)

    return call


def chunks_of(*files):
    """The documents of each chunk."""
    return [read_chunk_text(ranges) for ranges in cut_into_chunks(files)[0]]


def texts(*files):
    return sum(chunks_of(*files), [])


def test_where_documents_sentences_and_words_begin():
    # What has no piece is left out.
    documents = [["나는 학교에", "\x01\x02", "간다"], ["\x01"], ["가"]]
    text = tokenize_documents(documents, CodePoints())
    assert "".join(map(chr, text.ids)) == "나는학교에간다가"
    assert np.flatnonzero(text.word_starts).tolist() == [0, 2, 5, 7]
    assert (text.sentences, text.documents, text.num_documents) == ([0, 5, 7, 8], [0, 2, 3], 2)
    assert [text.sentence_bounds(index) for index in range(2)] == [[0, 5, 7], [7, 8]]
    assert text.words_of(1, 7).tolist() == [2, 5]


@pytest.mark.parametrize(
    ("contents", "documents"),
    [
        (["가 나\n다\n\n \t \n라\r\n\r\n마"], [["가 나", "다"], ["라"], ["마"]]),
        (["가\n나", "다\n"], [["가", "나"], ["다"]]),  # the end of a file ends its document
        (["\ufeff가\n나"], [["가", "나"]]),
        (["가\u2028나\n다\x85라"], [["가\u2028나", "다\x85라"]]),
        (["", "\n\n \n"], []),
        (["", "가"], [["가"]]),
    ],
)
def test_what_documents_are(write, contents, documents):
    files = [write(content, f"{number}.txt") for number, content in enumerate(contents)]
    assert texts(*files) == documents


@pytest.mark.parametrize(
    ("documents", "objective", "expected"),
    [
        ((2, 0), "nsp", []),
        ((1, 0), "nsp", ["one document"]),
        ((1, 0), "sop", []),
        ((2, 2), "sop", ["every one of the 2 documents has a single sentence"]),
        ((2, 1), "sop", []),
        ((3, 2), "nsp", ["2 of the 3 documents have a single sentence"]),
        ((1, 1), "nsp", ["one document", "a single sentence"]),
        ((2, 2), "none", []),
    ],
)
def test_layout_problems(documents, objective, expected):
    total, single = documents
    statistics = CorpusStatistics(documents=total, single_sentence_documents=single)
    found = find_layout_problems(statistics, objective)
    assert len(found) == len(expected)
    assert all(part in line for part, line in zip(expected, found, strict=True))


@pytest.mark.parametrize("single", [2, 3])
def test_cures_for_documents_of_one_sentence(single):
    statistics = CorpusStatistics(documents=3, single_sentence_documents=single)
    for is_split in (False, True):
        (line,) = find_layout_problems(statistics, "sop", split_sentences=is_split)
        cure = "if lines are paragraphs, add --split_sentences;"
        assert (cure in line) != is_split and "--objective=none" in line


def some_text(seed, documents=200):
    """Documents of many sizes, some with other white space between them."""
    rng = random.Random(seed)
    lines = []
    for number in range(documents):
        lines += [f"{number} 문장 {'가' * rng.randrange(40)}" for _ in range(rng.randint(1, 9))]
        space = rng.choice(["", " ", "\u3000", "\r", "\x85\t", "\u2028", "\xa0"])
        lines += [space] * rng.randint(1, 2)
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_chunks_hold_every_document_whole(write, set_sizes, seed):
    files = [write(some_text(seed * 10 + i), f"{i}.txt") for i in range(3)]
    files.insert(1, write("", "empty.txt"))
    together = [document for file in files for document in texts(file)]
    assert len(together) == 600 and len(chunks_of(*files)) == 1
    size = random.Random(seed).randint(300, 60_000)
    set_sizes(size)
    chunks = chunks_of(*files)
    assert sum(chunks, []) == together
    assert len(chunks) > 0.4 * sum(file.size for file in files) / size
    sizes = [sum(len("".join(document).encode()) for document in chunk) for chunk in chunks]
    assert max(sizes) < 3 * size + 2000


def test_small_files_share_a_chunk(write, set_sizes):
    files = [write(f"문서 {i}\n둘", f"{i}.txt") for i in range(40)]
    set_sizes(100)
    chunks = chunks_of(*files)
    assert [len(chunk) for chunk in chunks] == pytest.approx([7] * 6, abs=2)
    assert sum(chunks, []) == [[f"문서 {i}", "둘"] for i in range(40)]


def test_a_document_without_an_end_is_cut_between_sentences(write, set_sizes):
    set_sizes(1000, 2000)
    sentences = [f"문장 {i}" for i in range(1000)]
    file = write("\n".join(sentences))
    chunks = chunks_of(file)
    assert [sentence for ((*document,),) in chunks for sentence in document] == sentences
    assert len(chunks) > 5
    assert cut_into_chunks([file])[1] == set(range(1, len(chunks)))


@pytest.mark.parametrize("search, end, is_cut", [(7, 21, True), (10, 37, False), (30, 37, False)])
def test_a_blank_line_is_found_if_it_begins_in_reach(write, set_sizes, search, end, is_cut):
    set_sizes(17, search)
    file = write("가나\n다라\n마바\n사아\n \u3000\u3000 \n자차\n카타\n")
    chunks, continued = cut_into_chunks([file])
    assert chunks[0][0].end == end and (1 in continued) == is_cut


def test_text_without_blank_lines_is_soon_cut(write, set_sizes, monkeypatch):
    """Blocks are searched, not lines: decoding each line of 200 GB takes more than an hour."""
    set_sizes(200_000)
    file, reads = write(f"{'나는 학교에 갔다. ' * 4}\n" * 160_000), []

    class CountedFile(io.BufferedReader):
        def read(self, *size):
            reads.append("block")
            return super().read(*size)

        def readline(self, *size):
            reads.append("line")
            return super().readline(*size)

    opened = lambda path, mode: CountedFile(io.FileIO(path, mode))  # noqa: E731
    monkeypatch.setattr(splitting, "open", opened, raising=False)
    chunks, continued = cut_into_chunks([file])
    assert len(continued) == len(chunks) - 1 > 35
    assert 0 < len(reads) <= 6 * len(continued)


def test_a_line_of_8_megabytes_is_not_cut(write):
    file = write("가\n" + "나 " * 2_000_000 + "\n\n다\n라\n\n마")
    assert [[len(document) for document in chunk] for chunk in chunks_of(file)] == [[2], [2, 1]]


def test_a_line_without_an_end_is_cut_between_words(write, set_sizes):
    set_sizes(1000, 4000)
    words = [f"낱말{number}" for number in range(5000)]
    file = write("가\n\n" + "  ".join(words) + "\n\n나")
    made = chunks_of(file)
    sentences = [s for chunk in made for document in chunk for s in document]
    assert " ".join(" ".join(sentences).split()) == " ".join(["가", *words, "나"])
    assert max(len(sentence.encode()) for sentence in sentences) < 4000 + 1000 + 20
    _, continued = cut_into_chunks([file])
    assert len(continued) > 0.8 * file.size / 1000
    for number in continued:  # no word is in two chunks
        assert made[number][0][0].startswith("낱말")


def test_a_word_without_an_end_is_cut_between_characters(write, set_sizes):
    set_sizes(1000, 4000)
    sentences = sum(texts(write("가\n\n" + "낱" * 5000 + "\n\n나")), [])
    assert "".join(sentences) == "가" + "낱" * 5000 + "나"
    assert max(map(len, sentences)) * 3 < 5000


def test_the_memory_for_a_line_without_an_end_is_bounded(write, set_sizes):
    set_sizes(100_000, 400_000)
    file = write("가\n" + "나" * 4_000_000)
    tracemalloc.start()
    cut_into_chunks([file])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < file.size / 4


# === JSON lines ===


@pytest.mark.parametrize("size", [9_900_000, 13_000_000])
def test_a_json_line_is_whole_or_refused(write, size):
    """It is read at once, so its size bounds the memory."""
    lines = ['{"text": "가"}'] * 7 + [json.dumps({"text": "a" * size}), '{"text": "나"}']
    file = write("\n".join(lines), "a.jsonl", "jsonl")
    if size < splitting.LONGEST_JSON:
        assert [len(document) for document in texts(file)] == [1] * 9
        return
    message = "line 8: a line must be a JSON object of at most 10 MB. Received: 13 MB"
    with refused(message):
        chunks_of(file)


def test_json_lines_are_documents(write, set_sizes):
    documents = texts(write(some_text(1)))
    lines = [json.dumps({"id": 1, "text": "\n".join(document) + "\n"}) for document in documents]
    file = write("\n".join(lines) + "\n\n", "a.jsonl", "jsonl")
    assert texts(file) == documents
    set_sizes(500)
    assert texts(file) == documents and len(chunks_of(file)) > 50


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('{"text": "a"', "Expecting"),
        ("[1]", "Received: list"),
        ('{"txt": "a"}', "Received: none"),
        ('{"text": 3}', "Received: int"),
        ("null", "Received: NoneType"),
    ],
)
def test_other_json_is_refused_with_file_and_line(write, set_sizes, line, part):
    set_sizes(500)
    file = write('{"text": "가나다라"}\n' * 99 + line, "a.jsonl", "jsonl")
    with refused("a.jsonl, line 100: a line must be a JSON ", part):
        texts(file)


def test_the_line_of_an_error_is_that_of_the_file(write, set_sizes):
    set_sizes(500)
    file = write("가나다\n라마바\n\n".encode() * 300 + b"abc\xff")
    with refused("text.txt, line 901: the text must be UTF-8.", "0xff at column 4"):
        texts(file)
