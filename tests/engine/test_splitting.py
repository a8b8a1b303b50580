"""Text files are split into chunks of documents, and these are tokenized."""

import gzip
import io
import json
import os
import random
import tracemalloc

import numpy as np
import pytest

from bert_common.errors import InputError
from create_pretraining_data.engine import splitting
from create_pretraining_data.engine.plain_text import recognise, write_plain
from create_pretraining_data.engine.splitting import (
    InputFile,
    cut_into_chunks,
    read_chunk,
    read_chunk_text,
)
from create_pretraining_data.instances.layout_checks import find_layout_problems
from create_pretraining_data.instances.make_instances import CorpusStatistics
from create_pretraining_data.instances.text import tokenize_documents
from tests.support.sequences import CodePoints


def write(tmp_path, content, name="text.txt"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def chunks_of(files, input_format="text"):
    """The documents of each chunk."""
    sources = [InputFile(path, path, os.path.getsize(path), input_format) for path in files]
    chunks, _ = cut_into_chunks(sources)
    return [read_chunk_text(ranges) for ranges in chunks]


def texts(files, input_format="text"):
    return [document for chunk in chunks_of(files, input_format) for document in chunk]


def test_where_documents_sentences_and_words_begin():
    text = tokenize_documents([["나는 학교에", "간다"], ["가"]], CodePoints())
    assert "".join(map(chr, text.ids)) == "나는학교에간다가"
    assert np.flatnonzero(text.word_starts).tolist() == [0, 2, 5, 7]
    assert (text.sentences, text.documents, text.num_documents) == ([0, 5, 7, 8], [0, 2, 3], 2)
    assert [text.sentence_bounds(index) for index in range(2)] == [[0, 5, 7], [7, 8]]
    assert text.words_of(1, 7).tolist() == [2, 5]


def test_blank_lines_part_documents(tmp_path):
    path = write(tmp_path, "가 나\n다\n\n \t \n라\r\n\r\n마")
    assert texts([path]) == [["가 나", "다"], ["라"], ["마"]]


def test_the_end_of_a_file_ends_its_document(tmp_path):
    files = [write(tmp_path, "가\n나", "1.txt"), write(tmp_path, "다\n", "2.txt")]
    assert texts(files) == [["가", "나"], ["다"]]


def test_what_has_no_piece_is_left_out():
    text = tokenize_documents([["가", "\x01\x02", "나"], ["\x01"]], CodePoints())
    assert text.ids.tolist() == [ord("가"), ord("나")]
    assert (text.sentences, text.documents) == ([0, 1, 2], [0, 2])


def test_a_byte_order_mark_is_no_piece(tmp_path):
    path = write(tmp_path, "\ufeff가\n나")
    assert texts([path]) == [["가", "나"]]


def test_only_a_newline_ends_a_line(tmp_path):
    path = write(tmp_path, "가\u2028나\n다\x85라")
    assert len(texts([path])[0]) == 2


def test_other_encodings_are_refused_with_file_and_line(tmp_path):
    path = write(tmp_path, "가\n나\n".encode() + "다라".encode("cp949"))
    with pytest.raises(InputError, match=r"text\.txt, line 3: the text must be UTF-8.*0xb4"):
        texts([path])


@pytest.mark.parametrize("content", ["", "\n\n \n"])
def test_a_file_may_hold_no_document(tmp_path, content):
    assert texts([write(tmp_path, content)]) == []


def test_an_empty_file_among_others_is_no_error(tmp_path):
    files = [write(tmp_path, "", "1.txt"), write(tmp_path, "가", "2.txt")]
    assert texts(files) == [["가"]]


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
    (line,) = find_layout_problems(statistics, "sop")
    assert "if lines are paragraphs, add --split_sentences;" in line
    assert "--objective=none" in line
    (line,) = find_layout_problems(statistics, "sop", split_sentences=True)
    assert "--split_sentences" not in line
    assert "--objective=none" in line


def some_text(seed, documents=200):
    """Documents of many sizes, some with other white space between them."""
    rng = random.Random(seed)
    lines = []
    for number in range(documents):
        lines += [f"{number} 문장 {'가' * rng.randrange(40)}" for _ in range(rng.randint(1, 9))]
        lines += [rng.choice(["", " ", "\u3000", "\r", "\x85\t", "\u2028", "\xa0"])] * rng.randint(
            1, 2
        )
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(8))
def test_chunks_hold_every_document_whole(tmp_path, monkeypatch, seed):
    files = [write(tmp_path, some_text(seed * 10 + i), f"{i}.txt") for i in range(3)]
    files.insert(1, write(tmp_path, "", "empty.txt"))
    together = [document for path in files for document in texts([path])]
    assert len(together) == 600 and len(chunks_of(files)) == 1
    size = random.Random(seed).randint(300, 60_000)
    monkeypatch.setattr(splitting, "CHUNK_BYTES", size)
    chunks = chunks_of(files)
    assert [document for chunk in chunks for document in chunk] == together
    total = sum(os.path.getsize(path) for path in files)
    assert len(chunks) > 0.4 * total / size
    sizes = [sum(len("".join(document).encode()) for document in chunk) for chunk in chunks]
    assert max(sizes) < 3 * size + 2000


def test_small_files_share_a_chunk(tmp_path, monkeypatch):
    files = [write(tmp_path, f"문서 {i}\n둘", f"{i}.txt") for i in range(40)]
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 100)
    chunks = chunks_of(files)
    assert [len(chunk) for chunk in chunks] == pytest.approx([7] * 6, abs=2)
    assert sum(chunks, []) == [[f"문서 {i}", "둘"] for i in range(40)]


def test_a_document_without_an_end_is_cut_between_sentences(tmp_path, monkeypatch):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(splitting, "LONGEST_SEARCH", 2000)
    path = write(tmp_path, "\n".join(f"문장 {i}" for i in range(1000)))
    chunks = chunks_of([path])
    assert [sentence for ((*document,),) in chunks for sentence in document] == [
        f"문장 {i}" for i in range(1000)
    ]
    assert len(chunks) > 5
    sources = [InputFile(path, path, os.path.getsize(path))]
    assert cut_into_chunks(sources)[1] == set(range(1, len(chunks)))


@pytest.mark.parametrize("search, end, is_cut", [(7, 21, True), (10, 37, False), (30, 37, False)])
def test_a_blank_line_is_found_if_it_begins_in_reach(tmp_path, monkeypatch, search, end, is_cut):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 17)
    monkeypatch.setattr(splitting, "LONGEST_SEARCH", search)
    path = write(tmp_path, "가나\n다라\n마바\n사아\n \u3000\u3000 \n자차\n카타\n")
    chunks, continued = cut_into_chunks([InputFile(path, path, os.path.getsize(path))])
    assert chunks[0][0].end == end and (1 in continued) == is_cut


def test_text_without_blank_lines_is_soon_cut(tmp_path, monkeypatch):
    """Blocks are searched, not lines: decoding each line of 200 GB takes more than an hour."""
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 200_000)
    path = write(tmp_path, f"{'나는 학교에 갔다. ' * 4}\n" * 160_000)
    reads = []

    class CountedFile(io.BufferedReader):
        def read(self, *size):
            reads.append("block")
            return super().read(*size)

        def readline(self, *size):
            reads.append("line")
            return super().readline(*size)

    opened = lambda path, mode: CountedFile(io.FileIO(path, mode))  # noqa: E731
    monkeypatch.setattr(splitting, "open", opened, raising=False)
    chunks, continued = cut_into_chunks([InputFile(path, path, os.path.getsize(path))])
    assert len(continued) == len(chunks) - 1 > 35
    assert 0 < len(reads) <= 6 * len(continued)


def test_a_line_of_8_megabytes_is_not_cut(tmp_path):
    path = write(tmp_path, "가\n" + "나 " * 2_000_000 + "\n\n다\n라\n\n마")
    assert [[len(document) for document in chunk] for chunk in chunks_of([path])] == [[2], [2, 1]]


@pytest.fixture
def short_search(monkeypatch):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(splitting, "LONGEST_SEARCH", 4000)


def test_a_line_without_an_end_is_cut_between_words(tmp_path, short_search):
    words = [f"낱말{number}" for number in range(5000)]
    path = write(tmp_path, "가\n\n" + "  ".join(words) + "\n\n나")
    size = os.path.getsize(path)
    chunks, continued = cut_into_chunks([InputFile(path, path, size)])
    made = [read_chunk_text(ranges) for ranges in chunks]
    sentences = [s for chunk in made for document in chunk for s in document]
    assert " ".join(" ".join(sentences).split()) == " ".join(["가", *words, "나"])
    assert max(len(sentence.encode()) for sentence in sentences) < 4000 + 1000 + 20
    assert len(continued) > 0.8 * size / 1000
    for number in continued:  # no word is in two chunks
        assert made[number][0][0].startswith("낱말")


def test_a_word_without_an_end_is_cut_between_characters(tmp_path, short_search):
    path = write(tmp_path, "가\n\n" + "낱" * 5000 + "\n\n나")
    sentences = [s for document in texts([path]) for s in document]
    assert "".join(sentences) == "가" + "낱" * 5000 + "나"
    assert max(map(len, sentences)) * 3 < 5000


def test_the_memory_for_a_line_without_an_end_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 100_000)
    monkeypatch.setattr(splitting, "LONGEST_SEARCH", 400_000)
    path = write(tmp_path, "가\n" + "나" * 4_000_000)
    tracemalloc.start()
    cut_into_chunks([InputFile(path, path, os.path.getsize(path))])
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < os.path.getsize(path) / 4


@pytest.mark.parametrize("size", [9_900_000, 13_000_000])
def test_a_json_line_is_whole_or_refused(tmp_path, size):
    """It is read at once, so its size bounds the memory."""
    lines = ['{"text": "가"}'] * 7 + [json.dumps({"text": "a" * size}), '{"text": "나"}']
    path = write(tmp_path, "\n".join(lines), "a.jsonl")
    if size < splitting.LONGEST_JSON:
        assert [len(document) for document in texts([path], "jsonl")] == [1] * 9
        return
    with pytest.raises(
        InputError, match=r"line 8: a line must be a JSON object of at most 10 MB. Received: 13 MB"
    ):
        chunks_of([path], "jsonl")


def test_json_lines_are_documents(tmp_path, monkeypatch):
    documents = texts([write(tmp_path, some_text(1))])
    lines = [json.dumps({"id": 1, "text": "\n".join(document) + "\n"}) for document in documents]
    path = write(tmp_path, "\n".join(lines) + "\n\n", "a.jsonl")
    assert texts([path], "jsonl") == documents
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 500)
    assert texts([path], "jsonl") == documents and len(chunks_of([path], "jsonl")) > 50


def test_null_is_left_out_and_counted_once(tmp_path, short_search):
    texts = [f"글 {i}" for i in range(300)]
    sources, found = [], []
    for name, given in (("1.jsonl", texts), ("2.jsonl", [x for t in texts for x in (t, None)])):
        lines = [json.dumps({"text": text}, ensure_ascii=False) for text in given]
        path = write(tmp_path, "\n".join(lines), name)
        sources.append(InputFile(path, path, os.path.getsize(path), "jsonl"))
        chunks, _ = cut_into_chunks(sources[-1:])
        read = [read_chunk(ranges) for ranges in chunks]
        assert [read_chunk_text(ranges) for ranges in chunks] == [each for each, _ in read]
        documents = [" ".join(document) for each, _ in read for document in each]
        found.append((" ".join(documents).split(), sum(count for _, count in read)))
    assert found == [(" ".join(texts).split(), 0), (" ".join(texts).split(), len(texts))]
    assert len(chunks) > 5


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
def test_other_json_is_refused_with_file_and_line(tmp_path, monkeypatch, line, part):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 500)
    path = write(tmp_path, '{"text": "가나다라"}\n' * 99 + line, "a.jsonl")
    with pytest.raises(InputError, match=r"a\.jsonl, line 100: a line must be a JSON .*" + part):
        texts([path], "jsonl")


def test_the_line_of_an_error_is_that_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(splitting, "CHUNK_BYTES", 500)
    path = write(tmp_path, "가나다\n라마바\n\n".encode() * 300 + b"abc\xff")
    with pytest.raises(InputError, match=r"text\.txt, line 901:.*0xff at column 4"):
        texts([path])


def test_gzip_is_inflated(tmp_path):
    text = some_text(3).encode()
    path = write(tmp_path, gzip.compress(text[:999]) + gzip.compress(text[999:]), "a.gz")
    assert recognise(path).kind == "gzip" and recognise(write(tmp_path, text)).kind == "plain"
    write_plain(recognise(path), str(tmp_path / "plain"))
    assert (tmp_path / "plain").read_bytes() == text
    for damaged in (gzip.compress(text)[:-9], gzip.compress(text)[:-6] + b"abcdef"):
        path = write(tmp_path, damaged, "b.gz")
        with pytest.raises(InputError, match=r"b\.gz must be a complete gzip file"):
            write_plain(recognise(path), str(tmp_path / "other"))
    assert not list(tmp_path.glob("other*"))
