"""The text sample of the vocabulary learner: lines drawn by a seed, sentences of bounded length."""

from collections import Counter

import pytest

from create_pretraining_data.engine.plain_lines import open_texts
from tests.support.refusals import refused
from tokenization.vocab_learning.text_sample import LONGEST_READ, read_sample, read_sentences


@pytest.fixture
def write(tmp_path):
    def call(content):
        path = tmp_path / "text.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return call


def sample(path, most_bytes=10**9, seed=1):
    counts = Counter()
    texts = open_texts([str(path)], "text")
    return list(read_sample(texts, most_bytes, seed, counts)), counts


def test_small_text_is_read_whole(write):
    path = write("\ufeff하나\r\n\n둘\u2028셋\n")
    lines, counts = sample(path)
    assert lines == ["하나", "둘\u2028셋"]
    assert (counts["lines"], counts["sampled_lines"]) == (3, 3)
    assert counts["bytes"] == path.stat().st_size


def test_large_text_is_sampled_by_the_seed(write):
    path = write("".join(f"줄{i:05}\n" for i in range(4000)))
    size = path.stat().st_size // 4
    lines, counts = sample(path, size)
    assert 850 < len(lines) < 1150  # 1,000 expected, five standard deviations are 137
    assert counts["sampled_lines"] == len(lines) and counts["lines"] == 4000
    assert sample(path, size)[0] == lines == sorted(lines)
    assert sample(path, size, seed=2)[0] != lines


@pytest.mark.parametrize("space", [" ", ""])
def test_an_endless_line_comes_in_parts_of_whole_characters(write, space):
    text = f"가나{space}" * (LONGEST_READ // 2)
    lines, counts = sample(write(text))
    assert len(lines) > 2
    assert max(len(line.encode()) for line in lines) <= LONGEST_READ + 8
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert counts["lines"] == counts["sampled_lines"] == len(lines)
    with refused("text.txt, line 2: ", "UTF-8", "0xb0"):
        sample(write(text.encode() + b"\n\xb0\xa1 ok\n"))


def test_sentences_are_words_of_bearable_length():
    characters = Counter()
    lines = ["가 나다", "하" * 65 + " 끝", "말 " * 1500]
    sentences = list(read_sentences(lines, str.split, characters))
    assert sentences[:2] == ["가 나다", "끝"]
    assert max(map(len, sentences)) <= 1000
    assert " ".join(sentences[2:]).split() == ["말"] * 1500
    assert (characters["하"], characters["##하"], characters["##다"]) == (1, 64, 1)
