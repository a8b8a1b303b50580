"""Text files become documents of sentences."""

import pytest

from create_pretraining_data.documents import (
    Sentence,
    describe,
    find_layout_problems,
    join,
    read_documents,
    tokenize_sentence,
)
from tokenization.errors import InputError


class Syllables:
    """A tokenizer without "##": a word's pieces are its characters, their ids code points."""

    def tokenize_words(self, text):
        visible = "".join(c for c in text if c >= " ")  # drops control characters
        return [list(word) for word in visible.split()]

    def convert_tokens_to_ids(self, pieces):
        return [ord(piece) for piece in pieces]


def write(tmp_path, content, name="text.txt"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def texts(documents):
    return [["".join(map(chr, sentence.ids)) for sentence in document] for document in documents]


def test_a_sentence_knows_where_its_words_begin():
    sentence = tokenize_sentence("나는 학교에 간다", Syllables())
    assert sentence.word_starts == [0, 2, 5]
    assert "".join(map(chr, sentence.ids)) == "나는학교에간다"


def test_blank_lines_part_documents(tmp_path):
    path = write(tmp_path, "가 나\n다\n\n \t \n라\r\n\r\n마")
    assert texts(read_documents([path], Syllables())) == [["가나", "다"], ["라"], ["마"]]


def test_the_end_of_a_file_ends_its_document(tmp_path):
    files = [write(tmp_path, "가\n나", "1.txt"), write(tmp_path, "다\n", "2.txt")]
    assert texts(read_documents(files, Syllables())) == [["가", "나"], ["다"]]


def test_a_line_without_pieces_parts_nothing(tmp_path):
    path = write(tmp_path, "가\n\x01\x02\n나\n")
    assert texts(read_documents([path], Syllables())) == [["가", "나"]]


def test_a_byte_order_mark_is_no_piece(tmp_path):
    path = write(tmp_path, "\ufeff가\n나")
    assert texts(read_documents([path], Syllables())) == [["가", "나"]]


def test_only_a_newline_ends_a_line(tmp_path):
    path = write(tmp_path, "가\u2028나\n다\x85라")
    assert len(read_documents([path], Syllables())[0]) == 2


def test_other_encodings_are_refused_with_file_and_line(tmp_path):
    path = write(tmp_path, "가\n나\n".encode() + "다라".encode("cp949"))
    with pytest.raises(InputError, match=r"text\.txt, line 3: the text must be UTF-8.*0xb4"):
        read_documents([path], Syllables())


@pytest.mark.parametrize("content", ["", "\n\n \n", "\x01\n"])
def test_a_corpus_without_sentences_is_refused(tmp_path, content):
    path = write(tmp_path, content)
    with pytest.raises(InputError, match="at least one sentence"):
        read_documents([path], Syllables())


def test_an_empty_file_among_others_is_no_error(tmp_path):
    files = [write(tmp_path, "", "1.txt"), write(tmp_path, "가", "2.txt")]
    assert texts(read_documents(files, Syllables())) == [["가"]]


def test_join_moves_word_starts():
    first, second = Sentence([1, 2, 3], [0, 2]), Sentence([4, 5], [0, 1])
    assert join([first, second, first]) == Sentence([1, 2, 3, 4, 5, 1, 2, 3], [0, 2, 3, 4, 5, 7])


def test_describe_counts():
    documents = [[Sentence([7, 1, 1], [0])], [Sentence([7], [0]), Sentence([1, 2], [0, 1])]]
    assert describe(documents, unk_id=1) == (2, 3, 6, 3)
    assert describe(documents, unk_id=None).unknown == 0


ONE, TWO = [Sentence([1, 2], [0, 1])], [Sentence([1], [0]), Sentence([2], [0])]


@pytest.mark.parametrize(
    ("documents", "objective", "expected"),
    [
        ([TWO, TWO], "nsp", []),
        ([TWO], "nsp", ["one document"]),
        ([TWO], "sop", []),
        ([ONE, ONE], "sop", ["every one of the 2 documents has a single sentence"]),
        ([ONE, TWO], "sop", []),
        ([ONE], "nsp", ["one document", "a single sentence"]),
        ([ONE, ONE], "none", []),
    ],
)
def test_layout_problems(documents, objective, expected):
    found = find_layout_problems(documents, objective)
    assert len(found) == len(expected)
    assert all(part in line for part, line in zip(expected, found, strict=True))
