"""The text sample of the vocabulary learner: lines drawn by a seed, sentences of bounded length."""

import gzip
import json
from collections import Counter

import pytest

from create_pretraining_data.engine.plain_lines import open_texts
from tests.support.paths import ROOT
from tokenization import InputError
from tokenization.vocab_learning.text_sample import LONGEST_READ, read_sample, read_sentences

CORPUS = ROOT / "sample_corpus" / "train.txt"


def sample(path, most_bytes=10**9, seed=1):
    counts = Counter()
    texts = open_texts([str(path)], "text")
    return list(read_sample(texts, most_bytes, seed, counts)), counts


def test_small_text_is_read_whole(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("\ufeff하나\r\n\n둘\u2028셋\n".encode())
    lines, counts = sample(path)
    assert lines == ["하나", "둘\u2028셋"]
    assert (counts["lines"], counts["sampled_lines"]) == (3, 3)
    assert counts["bytes"] == path.stat().st_size


def test_large_text_is_sampled_by_the_seed(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"줄{i:05}\n" for i in range(4000)), encoding="utf-8")
    lines, counts = sample(path, path.stat().st_size // 4)
    assert 850 < len(lines) < 1150  # 1,000 expected, five standard deviations are 137
    assert counts["sampled_lines"] == len(lines) and counts["lines"] == 4000
    assert sample(path, path.stat().st_size // 4)[0] == lines
    assert sample(path, path.stat().st_size // 4, seed=2)[0] != lines
    assert lines == sorted(lines)


def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes("가나 ".encode() * LONGEST_READ + b"\n\xb0\xa1 ok\n")
    with pytest.raises(InputError, match=r"text.txt, line 2: .*UTF-8.*0xb0"):
        sample(path)


@pytest.mark.parametrize("space", [" ", ""])
def test_an_endless_line_comes_in_parts_of_whole_characters(tmp_path, space):
    path = tmp_path / "text.txt"
    text = f"가나{space}" * (LONGEST_READ // 2)
    path.write_text(text, encoding="utf-8")
    lines, counts = sample(path)
    assert len(lines) > 2
    assert max(len(line.encode()) for line in lines) <= LONGEST_READ + 8
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert counts["lines"] == counts["sampled_lines"] == len(lines)


def test_sentences_are_words_of_bearable_length():
    characters = Counter()
    lines = ["가 나다", "하" * 65 + " 끝", "말 " * 1500]
    sentences = list(read_sentences(lines, str.split, characters))
    assert sentences[:2] == ["가 나다", "끝"]
    assert max(map(len, sentences)) <= 1000
    assert " ".join(sentences[2:]).split() == ["말"] * 1500
    assert (characters["하"], characters["##하"], characters["##다"]) == (1, 64, 1)


def test_the_sample_does_not_depend_on_the_form_of_the_text(tmp_path):
    text = CORPUS.read_bytes()[:50_000].replace(b"\r", b"")
    lines = text.decode("utf-8", "ignore").split("\n")
    (tmp_path / "a").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with open(tmp_path / "a.zip", "wb") as file:  # two members, a name that says nothing
        for part in ("\n".join(lines[:99]) + "\n", "\n".join(lines[99:]) + "\n"):
            file.write(gzip.compress(part.encode()))
    found, counts = sample(tmp_path / "a", 10_000)
    assert 0 < counts["sampled_lines"] < counts["lines"] / 2
    assert sample(tmp_path / "a.zip", 10_000) == (found, counts)
    objects = [{"id": 7, "text": "\n".join(lines[start : start + 9])} for start in range(0, 90, 9)]
    (tmp_path / "a.json").write_text("\n\n".join(map(json.dumps, objects)))
    (tmp_path / "b").write_text("\n".join(lines[:90]) + "\n", encoding="utf-8")
    for most in (10**9, 3000):
        counts, (expected, counted) = Counter(), sample(tmp_path / "b", most)
        texts = open_texts([str(tmp_path / "a.json")], "jsonl")
        assert list(read_sample(texts, most, 1, counts)) == expected
        assert counts == counted
