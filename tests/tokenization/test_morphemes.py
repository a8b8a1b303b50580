"""Morpheme boundaries for the vocabulary learner, from kiwipiepy or from endings alone."""

import re
import resource
import threading
from collections import Counter, namedtuple

import pytest

from tests.support.paths import ROOT
from tokenization import InputError
from tokenization.vocab_learning.endings import mark_by_endings, read_words
from tokenization.vocab_learning.morphemes import check_limits, mark_places, mark_with_kiwi
from tokenization.vocab_learning.pieces import choose_pieces

CORPUS = ROOT / "sample_corpus" / "train.txt"
CHAT = ["ㅋㅋㅋ", "ㅠㅠ", "꿀잼ㅋㅋ", "café", "москва", "♥♥♥", "ok♥ㅎㅎ"]
Token = namedtuple("Token", "form tag start len")


# What it shows -> a sentence, the form, tag, start and length of its tokens, the marks.
MARKS = {
    "between morphemes": (
        "학교에서는", [("학교", "NNG", 0, 2), ("에서", "JKB", 2, 2), ("는", "JX", 4, 1)], "101011",
    ),
    # A contraction may be cut off or not: 내려가 + ㄴ share 간; 하 + 았 share 했 whole, so only the
    # place after it is a boundary.
    "a shared end": ("내려간", [("내려가", "VV", 0, 3), ("ㄴ", "ETM", 2, 1)], "10?1"),
    "a shared whole": ("했다", [("하", "VV", 0, 1), ("었", "EP", 0, 1), ("다", "EF", 1, 1)], "111"),
    "a shared beginning": ("간다", [("가", "VV", 0, 1), ("ㄴ다", "EF", 0, 2)], "1?1"),
    "grammars disagree": ("우리나라", [("우리", "NP", 0, 2), ("나라", "NNG", 2, 2)], "10?01"),
    # Affixes that derive words are inside them.
    "a suffix": ("전문성", [("전문", "NNG", 0, 2), ("성", "XSN", 2, 1)], "1001"),
    "a prefix": ("비합법", [("비", "XPN", 0, 1), ("합법", "NNG", 1, 2)], "1001"),
    "plural": ("친구들", [("친구", "NNG", 0, 2), ("들", "XSN", 2, 1)], "1011"),
    "each": ("하나씩", [("하나", "NR", 0, 2), ("씩", "XSN", 2, 1)], "1011"),
    # May be cut.
    "a name": ("서울은", [("서울", "NNP", 0, 2), ("은", "JX", 2, 1)], "1~11"),
    "a number": ("2019년", [("2019", "SN", 0, 4), ("년", "NNB", 4, 1)], "1~~~11"),
    # Particles that the analyser leaves together.
    "two particles": ("서울로부터", [("서울", "NNG", 0, 2), ("로부터", "JKB", 2, 3)], "101101"),
    "an ending": ("한다고", [("하", "VV", 0, 1), ("ᆫ다고", "EC", 0, 3)], "1?11"),
    "a particle alone": ("부터", [("부터", "JX", 0, 2)], "101"),
}  # fmt: skip


@pytest.mark.parametrize("sentence, tokens, marks", MARKS.values(), ids=MARKS)
def test_marks(sentence, tokens, marks):
    assert mark_places(sentence, [Token(*token) for token in tokens]) == marks


@pytest.mark.parametrize("limit", [1_000_000_000, 1_599_999_999])
def test_too_little_address_space_for_kiwi_is_said_before(monkeypatch, limit):
    """The analyser itself would end the process."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, -1))
    message = r"requires 1.6 GB of address space for 1 threads. Received: .* \(ulimit -v\)"
    with pytest.raises(InputError, match=message):
        check_limits(1)


def test_threads_that_cannot_start_are_said_before(monkeypatch):
    start, started = threading.Thread.start, []

    def start_two(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        start(thread)
        started.append(thread)

    monkeypatch.setattr(threading.Thread, "start", start_two)
    with pytest.raises(InputError, match="4 threads .* can't start new thread after 2 of them"):
        check_limits(4)
    assert not any(thread.is_alive() for thread in started)


def test_kiwi_marks_the_words_of_its_sentence():
    pytest.importorskip("kiwipiepy", reason="the extra korean is not installed")
    sentences = ["학교에서는 공부했다 .", "나는 갔다"]
    marked = list(mark_with_kiwi(sentences, num_threads=2))
    assert [[word for word, _ in words] for words in marked] == [s.split() for s in sentences]
    assert dict(marked[0]) == {"학교에서는": "0101", "공부했다": "011", ".": ""}


def marks_of(words):
    """The marks that endings give to counted words."""
    return {word: marks for word, marks in mark_by_endings(words)}


def test_endings_are_found_by_the_company_of_stems():
    nouns = ["학교", "회의", "서울", "나라", "친구", "하늘", "바람", "도서관"]
    particles = ["", "은", "는", "이", "가", "을", "를", "에서", "에는", "까지", "도"]
    words = Counter({noun + particle: 2 for noun in nouns for particle in particles})
    marks = marks_of(words)
    expected = {"학교에서": "010", "서울까지": "010", "도서관에는": "0011", "회의를": "01"}
    assert {word: marks[word] for word in expected} == expected and marks["회의"] == "0"
    assert sum(mark_by_endings(words).values()) == sum(words.values())


# Readings that need, in this order: that a word has no vote for itself as a stem; that stems
# rarely end like tails; that stems are weighed by all words, not by their tail alone.
READINGS = {
    "강아지에게": "강아지 에게", "고민했는데": "고민 했 는데", "골목마다": "골목 마다",
    "걱정했다": "걱정 했 다", "가득하다": "가득 하 다", "강아지": "강아지", "고양이는": "고양이 는",
    "과일을": "과일 을",
}  # fmt: skip


def test_readings_in_running_text():
    text = CORPUS.read_text(encoding="utf-8")
    readings, stems = read_words(sorted(set(re.findall("[가-힣]+", text))))
    assert {word: " ".join(readings[word]) for word in READINGS} == READINGS
    assert stems["강아지"] > 3


def test_digits_and_letters_are_parts_of_their_own():
    marks = marks_of(Counter(["2019년에", "GPU로", "abc", "가", *CHAT]))
    assert marks["2019년에"][3] == "1" and len(marks["2019년에"]) == 5
    expected = {"GPU로": "~~1", "abc": "~~", "가": "", "café": "~~~", "москва": "~~~~~"}
    expected |= {"♥♥♥": "~~", "ok♥ㅎㅎ": "~11~"}
    assert {word: marks[word] for word in expected} == expected


@pytest.mark.parametrize("analyser", ("kiwi", "none"))
def test_chat_is_learned_as_pieces(analyser):
    """Runs of jamo, of other letters and of a symbol are whole; jamo end where syllables do."""
    if analyser == "kiwi":
        pytest.importorskip("kiwipiepy")
        marks = dict(pair for words in mark_with_kiwi([" ".join(CHAT)], 1) for pair in words)
    else:
        marks = marks_of(Counter(CHAT))
    assert "1" not in marks["ㅋㅋㅋ"] + marks["ㅠㅠ"]
    assert marks["꿀잼ㅋㅋ"][1] == "1" and marks["꿀잼ㅋㅋ"][2] != "1"
    assert choose_pieces({("ㅋㅋㅋ", marks["ㅋㅋㅋ"]): 10}, 10, []) == ["ㅋㅋㅋ"]
